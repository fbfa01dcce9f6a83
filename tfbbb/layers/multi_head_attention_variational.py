"""The multi-head attention layer."""

from __future__ import annotations

from typing import Any

import keras

from tfbbb.base.private_apis import (
    flash_attention,
    options_of_projections,
)
from tfbbb.base.types import Config
from tfbbb.layers.composite import CompositeVariationalLayer
from tfbbb.layers.einsum_dense_variational import EinsumDenseVariational


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class MultiHeadAttentionVariational(
    CompositeVariationalLayer, keras.layers.MultiHeadAttention
):
    """Attention of several heads whose projections have a posterior distribution.

    `head_h = softmax(Q_h K_h' / sqrt(key_dim)) V_h`
    `output = [head_1, ..., head_H] @ W_o + b_o`

    with `Q_h = query @ W_q,h + b_q,h`, and likewise `K_h` and `V_h` (Vaswani et al.
    2017), and all weights and biases from q. The layer equals Keras' layer except for
    its projections `query_dense`, `key_dense`, `value_dense` and `output_dense`. Each
    is an `EinsumDenseVariational`, which adds its own divergence; the options hold for
    all. All positions of a row share their weights.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.MultiHeadAttentionVariational(2, 4, kl_weight=1 / 80)
    >>> x = np.ones((3, 5, 8), "float32")
    >>> layer(x, x, use_causal_mask=True).shape
    TensorShape([3, 5, 8])
    >>> len(layer.losses)
    4

    Args:
        estimator: How noise reaches the outputs of the projections: `"weight"`,
            `"flipout"` or `"score_function"`; `"auto"` takes `"flipout"` where the
            posterior is symmetric and factorises. `"local"` draws anew at every
            position, which is an approximation.

    Output shape:
        [batch, T, dim of the query], or [batch, T, *output_shape].
    """

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        # The projections are built later, when the rank of the inputs is known; wrong
        # options must raise an error now.
        self.any_part()

    def __setattr__(self, name: str, value: Any) -> None:
        # Keras creates the projections in `build`.
        if type(value) is keras.layers.EinsumDense:
            value = self._with_posterior(value)
        super().__setattr__(name, value)

    def any_part(self) -> EinsumDenseVariational:
        if self.built:
            return self.query_dense
        bias_axes = "cd" if self.use_bias else None
        return self._with_posterior(
            keras.layers.EinsumDense("ab,bcd->acd", (1, 1), bias_axes=bias_axes)
        )

    def _with_posterior(
        self, projection: keras.layers.EinsumDense
    ) -> EinsumDenseVariational:
        return EinsumDenseVariational(
            projection.equation,
            projection.partial_output_shape,
            projection.activation,
            projection.bias_axes,
            name=f"{self.name}_{projection.name}",
            seed=self.seed,
            **options_of_projections(self),
            **self._options,
        )

    def get_config(self) -> Config:
        config = super().get_config()
        config["flash_attention"] = flash_attention(self)
        return config
