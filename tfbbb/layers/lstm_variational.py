"""The long short-term memory (LSTM) layer."""

import keras
from keras import ops

from tfbbb.base.types import Tensor
from tfbbb.layers.recurrent_variational import RecurrentVariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class LSTMVariational(RecurrentVariationalLayer, keras.layers.LSTM):
    """A layer of long short-term memory whose weights have a posterior distribution.

    `i, f, g, o = split(x_t @ kernel + h_{t-1} @ recurrent_kernel + bias)`
    `c_t = sigmoid(f) * c_{t-1} + sigmoid(i) * tanh(g)`
    `h_t = sigmoid(o) * tanh(c_t)`

    (Hochreiter and Schmidhuber 1997) with `kernel, recurrent_kernel, bias ~ q` drawn
    once per sequence: all of its time steps see the same weights (Fortunato et al.
    2017). It trains by Bayes by backprop (Blundell et al. 2015), and its divergence
    counts once, not once per step.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> layer = tfbbb.layers.LSTMVariational(4, return_sequences=True, kl_weight=0.01)
    >>> layer(np.ones((2, 10, 3), "float32")).shape
    TensorShape([2, 10, 4])

    Output shape:
        [batch, units], or [batch, timesteps, units] with `return_sequences`; with
        `return_state` followed by `h` and `c`, each [batch, units].
    """

    num_gates = 4

    def step_from_sum(
        self, pre_activations: Tensor, states: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        _, c = states
        i, f, g, o = ops.split(pre_activations, 4, axis=-1)
        c = self.recurrent_activation(f) * c + (
            self.recurrent_activation(i) * self.activation(g)
        )
        h = self.recurrent_activation(o) * self.activation(c)
        return h, [h, c]
