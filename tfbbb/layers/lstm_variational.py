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

    Args:
        units: Number of outputs, a positive integer.
        activation: Keras activation of `g` and `c`, by name or as a function.
        recurrent_activation: Activation of the gates `i`, `f` and `o`.
        unit_forget_bias: Whether the posterior mean of the bias of `f` starts at one.

    Call arguments:
        sequences: [batch, timesteps, input_dim].
        initial_state: List of the initial states, each [batch, units].
        mask: Boolean, [batch, timesteps]: which steps to take.
        training: Whether the call is for training.

    Output shape:
        [batch, units], or [batch, timesteps, units] with `return_sequences`; with
        `return_state` followed by `h` and `c`, each [batch, units].

    Raises:
        ValueError: `units` is not a positive integer, a dropout is out of range, a name
            is unknown, or the estimator cannot train this layer with its posteriors
            (`"local"` would draw anew at every step).
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
