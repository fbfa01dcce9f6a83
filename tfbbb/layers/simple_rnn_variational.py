"""The fully connected recurrent layer."""

from typing import Any

import keras

from tfbbb.base.types import Regularizer, Tensor
from tfbbb.layers.recurrent_variational import RecurrentVariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class SimpleRNNVariational(RecurrentVariationalLayer, keras.layers.SimpleRNN):
    """A fully connected recurrent layer whose weights have a posterior distribution.

    `h_t = activation(x_t @ kernel + h_{t-1} @ recurrent_kernel + bias)`

    with `kernel, recurrent_kernel, bias ~ q` drawn once per sequence: all of its time
    steps see the same weights (Fortunato et al. 2017). It trains by Bayes by backprop
    (Blundell et al. 2015), and its divergence counts once, not once per step.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> layer = tfbbb.layers.SimpleRNNVariational(4, kl_weight=1 / 80)
    >>> layer(np.ones((2, 10, 3), "float32")).shape
    TensorShape([2, 4])

    Output shape:
        [batch, units], or [batch, timesteps, units] with `return_sequences`; with
        `return_state` followed by the state, [batch, units].
    """

    def __init__(
        self, *arguments: Any, activity_regularizer: Regularizer = None, **options: Any
    ):
        super().__init__(*arguments, **options)
        # Keras' layer takes it, and leaves it aside.
        self.activity_regularizer = keras.regularizers.get(activity_regularizer)

    def step_from_sum(
        self, pre_activations: Tensor, states: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        output = self.activation(pre_activations)
        return output, [output]
