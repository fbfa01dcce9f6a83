"""The multi-head attention layer."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import keras

from tfbbb.base.private_apis import (
    attention_options,
    build_attention,
    gate_projection,
    options_of_projections,
    set_projection,
)
from tfbbb.base.types import Config, Constraint, Initializer, Regularizer
from tfbbb.layers.einsum_dense_variational import EinsumDenseVariational
from tfbbb.layers.variational import (
    DEFAULT_BIAS_PRIOR,
    DEFAULT_POSTERIOR,
    DEFAULT_PRIOR,
    EstimatorLike,
    PosteriorLike,
    PriorLike,
)


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class MultiHeadAttentionVariational(keras.layers.MultiHeadAttention):
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
        num_heads: Number of heads H, a positive integer.
        key_dim: Size of each head's query and key.
        value_dim: Size of each head's value; by default `key_dim`.
        dropout: Fraction of the attention scores to drop in training.
        use_bias: Whether the projections have biases.
        output_shape: Shape of the output of one position; by default as of the query.
        attention_axes: Axes over which attention runs; by default all axes except rows,
            heads and features.
        sliding_window: Number of positions, to either side and with its own, that a
            position attends to; by default all.
        flash_attention: Whether to use flash attention, as for Keras' layer.
        kernel_initializer: Keras initializer of the kernels' posterior means.
        bias_initializer: Keras initializer of the biases' posterior means.
        kernel_regularizer: Keras regularizer of the kernels' posterior means.
        bias_regularizer: Keras regularizer of the biases' posterior means.
        activity_regularizer: Keras regularizer of the projections' outputs.
        kernel_constraint: Keras constraint on the kernels' posterior means.
        bias_constraint: Keras constraint on the biases' posterior means.
        use_gate: Whether a projection of the query, `gate_dense`, gates the heads'
            outputs by its sigmoid.
        seed: Integer that fixes the noise of training.
        posterior: q of the kernels, by name or as a `tfbbb.posteriors.Posterior`.
        prior: p of the kernels, by name or as a `tfbbb.priors.Prior`. The default is
            `Normal(scale=0.5)`.
        bias_posterior: q of the biases.
        bias_prior: p of the biases. The default is a standard normal.
        estimator: How noise reaches the outputs of the projections: `"weight"`,
            `"flipout"` or `"score_function"`; `"auto"` takes `"flipout"` where the
            posterior is symmetric and factorises. `"local"` draws anew at every
            position, which is an approximation.
        kl_weight: Weight of the KL divergence in the loss, `1/N` for N training rows.
            With `None`, `tfbbb.BayesianModel` sets it in `fit`.
        members: Number of posteriors that each projection holds.
        **options: `name`, `dtype`, `trainable`.

    Call arguments:
        query: [batch, T, dim].
        value: [batch, S, dim].
        key: [batch, S, dim]; by default the value.
        query_mask: Boolean, [batch, T].
        value_mask: Boolean, [batch, S].
        key_mask: Boolean, [batch, S].
        attention_mask: Boolean, [batch, T, S]: which positions of the value each
            position of the query may attend to.
        return_attention_scores: Whether to return the scores, [batch, H, T, S], too.
        training: Whether the call is for training.
        use_causal_mask: Whether positions ignore all later positions.

    Output shape:
        [batch, T, dim of the query], or [batch, T, *output_shape].

    Raises:
        ValueError: Keras' layer refuses an argument, a name is unknown, the estimator
            cannot train the posterior, or `kl_weight` is negative or not finite.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: int | Sequence[int] | None = None,
        attention_axes: int | Sequence[int] | None = None,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Regularizer = None,
        kernel_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        use_gate: bool = False,
        seed: int | None = None,
        *,
        posterior: PosteriorLike = DEFAULT_POSTERIOR,
        prior: PriorLike = DEFAULT_PRIOR,
        bias_posterior: PosteriorLike = DEFAULT_POSTERIOR,
        bias_prior: PriorLike = DEFAULT_BIAS_PRIOR,
        estimator: EstimatorLike = "auto",
        kl_weight: float | None = None,
        members: int = 1,
        **options: Any,
    ):
        super().__init__(
            num_heads,
            key_dim,
            value_dim,
            dropout=dropout,
            use_bias=use_bias,
            output_shape=output_shape,
            attention_axes=attention_axes,
            sliding_window=sliding_window,
            flash_attention=flash_attention,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            use_gate=use_gate,
            seed=seed,
            **options,
        )
        self._options: dict[str, Any] = {
            "posterior": posterior,
            "prior": prior,
            "bias_posterior": bias_posterior,
            "bias_prior": bias_prior,
            "estimator": estimator,
            "kl_weight": kl_weight,
            "members": members,
        }
        # The projections are built later, when the rank of the inputs is known; wrong
        # options must raise an error now.
        checked = self._any_projection()
        # Pass objects, not configs: the config of a prior from a trained posterior does
        # not contain the posterior's values.
        for name in ("posterior", "prior", "bias_posterior", "bias_prior", "estimator"):
            self._options[name] = getattr(checked, name)

    @property
    def gate_dense(self) -> EinsumDenseVariational | None:
        """The projection whose sigmoid gates the heads' outputs, if there is one."""
        return gate_projection(self)

    def build(
        self,
        query_shape: tuple[int | None, ...],
        value_shape: tuple[int | None, ...],
        key_shape: tuple[int | None, ...] | None = None,
    ) -> None:
        key_shape = value_shape if key_shape is None else key_shape
        # Raises an error if the shapes do not fit together.
        self.compute_output_shape(query_shape, value_shape, key_shape)
        options = attention_options(self)
        for name, shape, size in [
            ("query", query_shape, self.key_dim),
            ("key", key_shape, self.key_dim),
            ("value", value_shape, self.value_dim),
        ]:
            set_projection(self, name, self._head_projection(name, shape, size))
        if options["use_gate"]:
            gate = self._head_projection(
                "gate", query_shape, self.value_dim, activation="sigmoid"
            )
            set_projection(self, "gate", gate)
        build_attention(self, len(value_shape) + 1)
        batch = string.ascii_lowercase[: len(query_shape) - 1]
        output_shape = options["output_shape"] or (query_shape[-1],)
        axes = string.ascii_uppercase[: len(output_shape)]
        output = self._projection(
            "attention_output",
            f"{batch}yz,yz{axes}->{batch}{axes}",
            (*query_shape[1:-1], *output_shape),
        )
        set_projection(self, "output", output)
        output.build((*query_shape[:-1], self.num_heads, self.value_dim))

    def _head_projection(
        self, name: str, shape: tuple[int | None, ...], size: int, **options: Any
    ) -> EinsumDenseVariational:
        """Returns the projection of an input of a shape to `size` units per head."""
        batch = string.ascii_lowercase[: len(shape) - 1]
        projection = self._projection(
            name,
            f"{batch}x,xyz->{batch}yz",
            (*shape[1:-1], self.num_heads, size),
            **options,
        )
        projection.build(tuple(shape))
        return projection

    def _any_projection(self) -> EinsumDenseVariational:
        """Returns an unbuilt projection, for the properties all projections share."""
        return self._projection("query", "ab,bcd->acd", (1, 1))

    def _projection(
        self,
        name: str,
        equation: str,
        output_shape: Sequence[int | None],
        **options: Any,
    ) -> EinsumDenseVariational:
        kernel, outputs = equation.split(",")[1].split("->")
        return EinsumDenseVariational(
            equation,
            output_shape=output_shape,
            bias_axes="".join(c for c in outputs if c in kernel)
            if self.use_bias
            else None,
            name=f"{self.name}_{name}",
            seed=self.seed,
            **options_of_projections(self),
            **self._options,
            **options,
        )

    def get_config(self) -> Config:
        of_projections = self._any_projection().get_config()
        config = {
            **super().get_config(),
            **{name: of_projections[name] for name in self._options},
        }
        config["flash_attention"] = attention_options(self)["flash_attention"]
        if self.built:
            # A model may have given the projections more of them.
            config["members"] = self.query_dense.members
        return config
