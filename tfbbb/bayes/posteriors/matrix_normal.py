"""The matrix-normal posterior, with a Kronecker-factored covariance."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tfbbb.base.lazy import tf
from tfbbb.base.numbers import choice
from tfbbb.base.types import ArrayLike, Initializer, Tensor
from tfbbb.bayes.posteriors.full_covariance_normal import (
    cholesky_factor,
    number_of_correlations,
)
from tfbbb.bayes.posteriors.posterior import (
    Declared,
    InitialScale,
    NormalPosterior,
    Parameters,
    Sizes,
    matrix_sides,
    register,
    reshape_last_axes,
    sum_over_weights,
)

Covariance = Annotated[
    Literal["full", "eigenbasis"],
    Field(description="Whether the variances are a product, or only the bases."),
]


@register(
    "matrix_normal",
    "A normal whose covariance is a product of row and column covariances.",
)
class MatrixNormal(NormalPosterior):
    """A normal with a Kronecker-factored covariance (Louizos & Welling 2016).

    `q(W) = MN(W; M, U, V)`:   Cov(W_ij, W_kl) = U_ik V_jl

    The last axis of a weight is the columns (the units of a dense kernel); all other
    axes together are the rows (the inputs). A factor can move between U and V without
    changing q. To fix it, the Cholesky diagonal of U has the geometric mean 1, and V
    contains the scale.

    With `covariance="eigenbasis"` the variances need not factor, only the basis does:

        `W = M + P (S * Z) Q^T`,   Z standard normal,

    P and Q are the eigenvectors of U and V where S is the product of the roots of their
    eigenvalues. This form is the inverse of a Kronecker product plus a multiple of the
    identity, as the Laplace approximation has it (George et al. 2018).

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(4, posterior="matrix_normal")
    >>> layer.build((None, 25))
    >>> tuple(layer.kernel.variables["row_log_scale"].shape)
    (25,)

    Args:
        covariance: `"full"` for any U and V, `"eigenbasis"` for any P, Q and S, of at
            most 4096 rows and columns.
    """

    def __init__(
        self, covariance: Covariance = "full", initial_scale: InitialScale = 0.1
    ):
        super().__init__(initial_scale)
        self.covariance = choice("covariance", covariance, ("full", "eigenbasis"))

    def covariance_size(self, shape: Sizes) -> int:
        return max(matrix_sides(shape))

    def declared(self, shape: Sizes, fan_in: int, mean: Initializer) -> Declared:
        rows, columns = matrix_sides(shape)
        log_scale = self.initial_log_scale(fan_in)
        if self.covariance == "eigenbasis":
            return {
                "mean": (shape, mean),
                "log_scale": ((rows, columns), log_scale),
                "row_basis": ((rows, rows), "identity"),
                "column_basis": ((columns, columns), "identity"),
            }
        return {
            "mean": (shape, mean),
            "row_log_scale": ((rows,), "zeros"),
            "column_log_scale": ((columns,), log_scale),
            "row_correlations": ((number_of_correlations(rows),), "zeros"),
            "column_correlations": ((number_of_correlations(columns),), "zeros"),
        }

    def factors(self, parameters: Parameters) -> tuple[Tensor, Tensor, Tensor]:
        """Returns A, B and S of `W = M + A (S * Z) B^T`, where S broadcasts to Z."""
        if self.covariance == "eigenbasis":
            scale = tf.exp(parameters["log_scale"])
            return parameters["row_basis"], parameters["column_basis"], scale
        row = parameters["row_log_scale"]
        row -= tf.reduce_mean(row, axis=-1, keepdims=True)
        row_factor = cholesky_factor(row, parameters["row_correlations"])
        column_factor = cholesky_factor(
            parameters["column_log_scale"], parameters["column_correlations"]
        )
        return row_factor, column_factor, tf.ones([1, 1], row_factor.dtype)

    def variance(self, parameters: Parameters, shape: Sizes) -> Tensor:
        rows, columns, scale = self.factors(parameters)
        scale *= tf.ones(matrix_sides(shape), scale.dtype)
        variances = tf.square(rows) @ tf.square(scale)
        return _as_weights(
            tf.linalg.matmul(variances, tf.square(columns), transpose_b=True), shape
        )

    def perturb(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        rows, columns, scale = self.factors(parameters)
        scaled = scale * _as_matrix(noise, shape)
        deviations = rows @ tf.linalg.matmul(scaled, columns, transpose_b=True)
        return _as_weights(deviations, shape)

    def squared_distance(
        self, parameters: Parameters, deviations: Tensor, shape: Sizes
    ) -> Tensor:
        rows, columns, scale = self.factors(parameters)
        # `tf.linalg.solve` would not broadcast over samples.
        by_rows = tf.linalg.inv(rows) @ _as_matrix(deviations, shape)
        standardized = tf.linalg.matmul(
            by_rows, tf.linalg.inv(columns), transpose_b=True
        )
        return sum_over_weights(tf.square(standardized / scale), matrix_sides(shape))

    def log_volume(self, parameters: Parameters, shape: Sizes) -> Tensor:
        # log |U x V| = C log |U| + R log |V|, where log |U| is pinned to 0.
        rows, columns = matrix_sides(shape)
        if self.covariance == "eigenbasis":
            _, row_volume = tf.linalg.slogdet(parameters["row_basis"])
            _, column_volume = tf.linalg.slogdet(parameters["column_basis"])
            scales = tf.reduce_sum(parameters["log_scale"], axis=(-2, -1))
            return scales + columns * row_volume + rows * column_volume
        return rows * tf.reduce_sum(parameters["column_log_scale"], axis=-1)


def _as_matrix(values: ArrayLike, shape: Sizes) -> Tensor:
    return reshape_last_axes(values, len(shape), matrix_sides(shape))


def _as_weights(values: ArrayLike, shape: Sizes) -> Tensor:
    return reshape_last_axes(values, 2, shape)
