"""The matrix-normal posterior, with a Kronecker-factored covariance."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from tfbbb.base.lazy import keras, tf
from tfbbb.base.types import ArrayLike, Initializer, Tensor
from tfbbb.bayes.posteriors.full_covariance_normal import (
    cholesky_factor,
    number_of_correlations,
)
from tfbbb.bayes.posteriors.posterior import (
    HALF_LOG_2PI,
    MAX_COVARIANCE,
    NORMAL_ENTROPY,
    AddWeight,
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
    Literal["diagonal", "full", "eigenbasis"],
    Field(description="`full` and `eigenbasis` allow at most 4096 rows and columns."),
]


@register(
    "matrix_normal",
    "A normal whose covariance is a product of row and column covariances.",
)
class MatrixNormal(NormalPosterior):
    """A normal with a Kronecker-factored covariance (Louizos & Welling 2016).

    `q(W) = MN(W; M, U, V)`:   Cov(W_ij, W_kl) = U_ik V_jl

    The last axis of a weight is the columns (the units of a dense kernel); all other
    axes together are the rows (the inputs). R rows and C columns need R + C variances
    instead of R C.

    A factor can move between U and V without changing q. To fix it, the Cholesky
    diagonal of U has the geometric mean 1, and V contains the scale.

    With `covariance="eigenbasis"` the variances need not factor, only the basis does:

        `W = M + P (S * Z) Q^T`,   Z standard normal,

    P and Q are the eigenvectors of U and V where S is the product of the roots of their
    eigenvalues. This form is the inverse of a Kronecker product plus a multiple of the
    identity, as the Laplace approximation has it (George et al. 2018).

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(
    ...     4, posterior=tfbbb.posteriors.MatrixNormal(covariance="full")
    ... )
    >>> layer.build((None, 25))
    >>> tuple(layer.kernel.variables["row_log_scale"].shape)
    (25,)

    Args:
        covariance: `"diagonal"` for diagonal U and V, the family of Louizos and
            Welling: the weights are then independent. `"full"` for any U and V,
            `"eigenbasis"` for any P, Q and S, both with R and C at most 4096.
        initial_scale: Standard deviation at the start, in units of `1/sqrt(fan_in)`
            (a bias has a fan-in of 1). Positive.

    Raises:
        ValueError: When built for more than 4096 rows or columns with a `covariance`
            other than `"diagonal"`.
    """

    has_output_variance = True

    def __init__(
        self, covariance: Covariance = "diagonal", initial_scale: InitialScale = 0.1
    ):
        super().__init__(initial_scale)
        if covariance not in ("diagonal", "full", "eigenbasis"):
            raise ValueError(
                "`covariance` must be 'diagonal', 'full' or 'eigenbasis'. "
                f"Received: covariance={covariance!r}"
            )
        self.covariance = covariance

    @property
    def factorised(self) -> bool:  # type: ignore[override]
        """With diagonal covariances the weights are independent."""
        return self.covariance == "diagonal"

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """With diagonal covariances the weights are independent."""
        return self.covariance == "diagonal"

    def num_parameters(self, shape: Sizes) -> int:
        rows, columns = matrix_sides(shape)
        if self.covariance == "diagonal":
            return math.prod(shape) + rows + columns
        if self.covariance == "eigenbasis":
            return 2 * math.prod(shape) + rows**2 + columns**2
        correlations = number_of_correlations(rows) + number_of_correlations(columns)
        return math.prod(shape) + rows + columns + correlations

    def covariance_size(self, shape: Sizes) -> int:
        return 0 if self.covariance == "diagonal" else max(matrix_sides(shape))

    def add_variables(
        self,
        add_weight: AddWeight,
        shape: Sizes,
        fan_in: int,
        mean_initializer: Initializer,
    ) -> dict[str, keras.Variable]:
        rows, columns = matrix_sides(shape)
        log_scale = keras.initializers.Constant(self.initial_log_scale(fan_in))
        self._check_sides(shape)
        if self.covariance == "eigenbasis":
            identity = keras.initializers.Identity()
            return {
                "mean": add_weight("mean", shape, mean_initializer),
                "log_scale": add_weight("log_scale", (rows, columns), log_scale),
                "row_basis": add_weight("row_basis", (rows, rows), identity),
                "column_basis": add_weight(
                    "column_basis", (columns, columns), identity
                ),
            }
        variables = {
            "mean": add_weight("mean", shape, mean_initializer),
            "row_log_scale": add_weight("row_log_scale", (rows,), "zeros"),
            "column_log_scale": add_weight("column_log_scale", (columns,), log_scale),
        }
        if self.covariance == "diagonal":
            return variables
        for side, size in (("row", rows), ("column", columns)):
            name = f"{side}_correlations"
            correlations = (number_of_correlations(size),)
            variables[name] = add_weight(name, correlations, "zeros")
        return variables

    def _check_sides(self, shape: Sizes) -> None:
        if self.covariance_size(shape) > MAX_COVARIANCE:
            rows, columns = matrix_sides(shape)
            raise ValueError(
                f"The posterior 'matrix_normal' with full covariances is for "
                f"{MAX_COVARIANCE} rows and columns at most. Use "
                "`covariance='diagonal'` or 'low_rank_normal'. "
                f"Received: shape={shape}, which has {rows} rows and {columns} columns"
            )

    def variance(self, parameters: Parameters, shape: Sizes) -> Tensor:
        if self.covariance == "eigenbasis":
            along_rows = tf.square(parameters["row_basis"]) @ tf.exp(
                2.0 * parameters["log_scale"]
            )
            columns = tf.square(parameters["column_basis"])
            return _as_weights(
                tf.linalg.matmul(along_rows, columns, transpose_b=True), shape
            )
        row, column = self._log_scales(parameters)
        if self.covariance == "diagonal":
            row_variance, column_variance = tf.exp(2.0 * row), tf.exp(2.0 * column)
        else:
            row_variance, column_variance = (
                tf.reduce_sum(tf.square(factor), axis=-1)
                for factor in self.factors(parameters)
            )
        return _as_weights(
            row_variance[..., tf.newaxis] * column_variance[..., tf.newaxis, :], shape
        )

    def output_variance(
        self, parameters: Parameters, inputs: Tensor, shape: Sizes
    ) -> Tensor:
        if self.covariance == "diagonal":
            return super().output_variance(parameters, inputs, shape)
        if self.covariance == "eigenbasis":
            along_rows = tf.square(tf.matmul(inputs, parameters["row_basis"]))
            variances = tf.matmul(along_rows, tf.exp(2.0 * parameters["log_scale"]))
            columns = tf.square(parameters["column_basis"])
            return tf.matmul(variances, columns, transpose_b=True)
        row_factor, column_factor = self.factors(parameters)
        # Var[x @ W]_u = (x^T U x) V_uu
        of_rows = tf.reduce_sum(tf.square(tf.matmul(inputs, row_factor)), axis=-1)
        of_units = tf.reduce_sum(tf.square(column_factor), axis=-1)
        return of_rows[..., tf.newaxis] * of_units[..., tf.newaxis, :]

    def perturb(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        noise = _as_matrix(noise, shape)
        if self.covariance == "diagonal":
            row, column = self._log_scales(parameters)
            scale = tf.exp(row)[..., tf.newaxis] * tf.exp(column)[..., tf.newaxis, :]
            return _as_weights(scale * noise, shape)
        if self.covariance == "eigenbasis":
            noise = tf.exp(parameters["log_scale"]) * noise
            row_factor = parameters["row_basis"]
            column_factor = parameters["column_basis"]
        else:
            row_factor, column_factor = self.factors(parameters)
        deviations = row_factor @ tf.linalg.matmul(
            noise, column_factor, transpose_b=True
        )
        return _as_weights(deviations, shape)

    def log_prob(self, parameters: Parameters, weights: Tensor, shape: Sizes) -> Tensor:
        deviations = _as_matrix(weights - parameters["mean"], shape)
        if self.covariance == "diagonal":
            row, column = self._log_scales(parameters)
            standardized = (
                deviations
                * tf.exp(-row)[..., tf.newaxis]
                * tf.exp(-column)[..., tf.newaxis, :]
            )
        elif self.covariance == "eigenbasis":
            # `tf.linalg.solve` would not broadcast over samples.
            row_inverse = tf.linalg.inv(parameters["row_basis"])
            column_inverse = tf.linalg.inv(parameters["column_basis"])
            by_rows = row_inverse @ deviations
            by_columns = tf.linalg.matmul(by_rows, column_inverse, transpose_b=True)
            scale = tf.exp(-parameters["log_scale"])
            standardized = by_columns * scale
        else:
            row_factor, column_factor = self.factors(parameters)
            by_rows = tf.linalg.triangular_solve(row_factor, deviations)
            standardized = tf.linalg.triangular_solve(
                column_factor, tf.linalg.matrix_transpose(by_rows)
            )
        return (
            -0.5 * sum_over_weights(tf.square(standardized), matrix_sides(shape))
            - self._log_scale_sum(parameters, shape)
            - math.prod(shape) * HALF_LOG_2PI
        )

    def entropy(self, parameters: Parameters, shape: Sizes) -> Tensor:
        log_scales = self._log_scale_sum(parameters, shape)
        return log_scales + math.prod(shape) * NORMAL_ENTROPY

    def _log_scales(self, parameters: Parameters) -> tuple[Tensor, Tensor]:
        row = parameters["row_log_scale"]
        pinned = row - tf.reduce_mean(row, axis=-1, keepdims=True)
        return pinned, parameters["column_log_scale"]

    def factors(self, parameters: Parameters) -> tuple[Tensor, Tensor]:
        """Returns the Cholesky factors of U and V."""
        row, column = self._log_scales(parameters)
        return (
            cholesky_factor(row, parameters["row_correlations"]),
            cholesky_factor(column, parameters["column_correlations"]),
        )

    def _log_scale_sum(self, parameters: Parameters, shape: Sizes) -> Tensor:
        # Half of log |U x V| = C log |U| + R log |V|, where log |U| is pinned to 0.
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
