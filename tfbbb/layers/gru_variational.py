"""The gated recurrent unit (GRU) layer."""

from collections.abc import Callable, Sequence

import keras
from keras import ops

from tfbbb.base.types import Tensor
from tfbbb.layers.recurrent_variational import RecurrentVariationalLayer


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class GRUVariational(RecurrentVariationalLayer, keras.layers.GRU):
    """A layer of gated recurrent units whose weights have a posterior distribution.

    `z = sigmoid(x_t @ K_z + h_{t-1} @ R_z)`
    `r = sigmoid(x_t @ K_r + h_{t-1} @ R_r)`
    `g = tanh(x_t @ K_h + r * (h_{t-1} @ R_h))`
    `h_t = z * h_{t-1} + (1 - z) * g`

    and a bias to every product (Cho et al. 2014). `kernel = [K_z, K_r, K_h]`,
    `recurrent_kernel = [R_z, R_r, R_h]` and `bias` are drawn from q once per sequence:
    all of its time steps see the same weights (Fortunato et al. 2017). It trains by
    Bayes by backprop (Blundell et al. 2015), and its divergence counts once, not once
    per step.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> layer = tfbbb.layers.GRUVariational(4, return_state=True, kl_weight=0.01)
    >>> output, state = layer(np.ones((2, 10, 3), "float32"))
    >>> output.shape, state.shape
    (TensorShape([2, 4]), TensorShape([2, 4]))

    Args:
        reset_after: Whether `r` is applied to the product with `R_h`, as above; else
            to the state before it, `(r * h_{t-1}) @ R_h`, and the products of the state
            have no bias.

    Output shape:
        [batch, units], or [batch, timesteps, units] with `return_sequences`; with
        `return_state` followed by the state, [batch, units].
    """

    num_gates = 3

    @property
    def recurrent_parts(self) -> Sequence[tuple[int, int]]:
        return [(0, 3)] if self.reset_after else [(0, 2), (2, 3)]

    def step(
        self,
        inputs: Tensor,
        states: list[Tensor],
        *recurrent: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, list[Tensor]]:
        h = states[0]
        x_z, x_r, x_h = ops.split(inputs, 3, axis=-1)
        if self.reset_after:
            (product,) = recurrent
            h_z, h_r, h_h = ops.split(product(h), 3, axis=-1)
            return self._after_reset([x_z + h_z, x_r + h_r, x_h, h_h], h)
        of_gates, of_candidate = recurrent
        h_z, h_r = ops.split(of_gates(h), 2, axis=-1)
        reset = self.recurrent_activation(x_r + h_r)
        candidate = self.activation(x_h + of_candidate(reset * h))
        return self._next(self.recurrent_activation(x_z + h_z), candidate, h)

    @property
    def needs_sum_alone(self) -> bool:
        return self.reset_after and type(self).step is GRUVariational.step

    def joined_kernel(self, draws: dict[str, Tensor]) -> Tensor:
        # The candidate's two products stay apart: the other's columns are zeros.
        gates = 2 * self.units

        def of_inputs(weights: Tensor) -> Tensor:
            candidate = weights[..., gates:]
            return ops.concatenate([weights, ops.zeros_like(candidate)], axis=-1)

        def of_state(weights: Tensor) -> Tensor:
            candidate = weights[..., gates:]
            zeros = ops.zeros_like(candidate)
            return ops.concatenate([weights[..., :gates], zeros, candidate], axis=-1)

        parts = [of_inputs(draws["kernel"]), of_state(draws["recurrent_kernel"])]
        if self.bias is not None:
            bias = draws["bias"]
            parts.insert(1, of_inputs(bias[:, :1]) + of_state(bias[:, 1:]))
        return ops.concatenate(parts, axis=1)

    def step_from_sum(
        self, pre_activations: Tensor, states: list[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        return self._after_reset(ops.split(pre_activations, 4, axis=-1), states[0])

    def _after_reset(
        self, parts: Sequence[Tensor], h: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """Returns the output and the state after z, r and the candidate's products."""
        z, r, x_h, h_h = parts
        candidate = self.activation(x_h + self.recurrent_activation(r) * h_h)
        return self._next(self.recurrent_activation(z), candidate, h)

    def _next(
        self, z: Tensor, candidate: Tensor, h: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        h = candidate + z * (h - candidate)
        return h, [h]
