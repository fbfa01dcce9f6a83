"""Random Fourier features of the radial kernel."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops

from tfbbb.base.numbers import int32, positive_integer, positive_number
from tfbbb.base.types import Config, Tensor


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class RandomFeatures(keras.layers.Layer):
    """Random Fourier features, which make a last dense layer a Gaussian process.

        `phi(h) = sqrt(2 / units) cos(h W / length_scale + b)`

    W is drawn from N(0, 1) and b from U(0, 2 pi) once; neither is trained. The inner
    product of the features of two rows estimates the radial kernel without bias, with
    a standard error of at most `1 / sqrt(units)` (Rahimi & Recht 2007):

        `phi(h)^T phi(h') ~= exp(-|h - h'|^2 / (2 length_scale^2))`

    So a dense layer without bias on these features, with the prior N(0, s^2), is a
    Gaussian process with s^2 times this kernel. `tfbbb.inference.Laplace` of the last
    layer computes its posterior in closed form, which is exact for normal targets.
    Where the layers before keep the distances of rows, as residual layers with
    `keras.layers.SpectralNormalization` do, the epistemic variance of the outputs grows
    with the distance from the training rows, up to that of the prior (SNGP, Liu et al.
    2020).

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.default_rng(0).uniform(-2, 2, size=(80, 1))
    >>> network = keras.Sequential([
    ...     keras.Input((1,)),
    ...     tfbbb.layers.RandomFeatures(256, seed=0),
    ...     tfbbb.layers.DenseVariational(1, use_bias=False, posterior="point"),
    ... ])
    >>> model = tfbbb.BayesianModel(network, likelihood="normal")
    >>> model.compile(tfbbb.optimizers.Adam(0.01))
    >>> history = model.fit(x, np.sin(2 * x), epochs=20, verbose=0)
    >>> process = tfbbb.inference.Laplace("kron", "last_layer")
    >>> model = process.fit(model, x, np.sin(2 * x), verbose=0)
    >>> near, far = model.predictive([[0.5], [9.0]]).epistemic[:, 0]
    >>> bool(far > 10 * near)
    True

    Args:
        units: Number of features, a positive integer.
        length_scale: Distance of inputs, in their units, at which the kernel is
            `exp(-1/2)`. Positive.
        seed: Integer that fixes W and b.
        **options: `name` and `dtype` of the layer. The features are computed in the
            dtype of its variables.

    Input shape:
        [batch, ..., input_dim].

    Output shape:
        [batch, ..., units].

    Raises:
        ValueError: `units` or `length_scale` is not positive, or `seed` not an integer.
    """

    def __init__(
        self,
        units: int,
        length_scale: float = 1.0,
        seed: int | None = None,
        **options: Any,
    ):
        # Angles are large numbers, whose cosine half precision would lose.
        super().__init__(autocast=False, **options)
        self.units = positive_integer("units", units)
        self.length_scale = positive_number("length_scale", length_scale)
        self.seed = None if seed is None else int32("seed", seed)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(min_ndim=2)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        input_dim = input_shape[-1]
        if input_dim is None:
            raise ValueError(
                f"The last dimension of the input of '{self.name}' must be known. "
                f"Received: input_shape={input_shape}"
            )
        # Of one seed generator, so that W and b are independent.
        seeds = keras.random.SeedGenerator(self.seed)
        self.frequencies = self.add_weight(
            name="frequencies",
            shape=(input_dim, self.units),
            initializer=lambda shape, dtype: keras.random.normal(
                shape, dtype=dtype, seed=seeds
            ),
            autocast=False,
            trainable=False,
        )
        self.phases = self.add_weight(
            name="phases",
            shape=(self.units,),
            initializer=lambda shape, dtype: keras.random.uniform(
                shape, 0.0, 2.0 * math.pi, dtype=dtype, seed=seeds
            ),
            autocast=False,
            trainable=False,
        )
        self.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-1: input_dim})

    def call(self, inputs: Tensor) -> Tensor:
        inputs = ops.cast(inputs, self.variable_dtype) / self.length_scale
        angles = ops.matmul(inputs, self.frequencies) + self.phases
        features = math.sqrt(2.0 / self.units) * ops.cos(angles)
        return ops.cast(features, self.compute_dtype)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (*input_shape[:-1], self.units)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "units": self.units,
            "length_scale": self.length_scale,
            "seed": self.seed,
        }
