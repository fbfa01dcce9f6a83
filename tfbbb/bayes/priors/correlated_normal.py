"""The Gaussian prior whose weights are correlated with each other."""

from __future__ import annotations

import math
from typing import Annotated, Any, cast

from pydantic import Field

from tfbbb.base.lazy import keras, np, tf
from tfbbb.base.numbers import is_finite_number
from tfbbb.base.types import Tensor
from tfbbb.bayes.families.arguments import InJobs, Number
from tfbbb.bayes.posteriors.normal_posterior import HALF_LOG_2PI
from tfbbb.bayes.posteriors.posterior import (
    MAX_COVARIANCE,
    Sizes,
    matrix_sides,
    reshape_last_axes,
)
from tfbbb.bayes.priors.prior import AddWeight, Parameters, register
from tfbbb.bayes.priors.scaled_prior import Scale, ScaledPrior

_Row = Annotated[tuple[Number, ...], Field(fail_fast=True)]
Correlation = Annotated[
    object,
    InJobs(
        Annotated[
            Annotated[Number, Field(gt=-1, lt=1)]
            | Annotated[tuple[_Row, ...], Field(fail_fast=True)],
            Field(
                description="The correlation of the weights of a unit, or a covariance "
                "matrix of the weights of a unit or of all weights."
            ),
        ]
    ),
]


@register(
    "correlated_normal",
    "A normal around zero whose weights are correlated, with a covariance matrix.",
)
class CorrelatedNormal(ScaledPrior):
    """A normal with mean zero and a full covariance: `p(w) = N(w; 0, s^2 C)`.

    C is one of

    - a number r: the weights of a unit correlate by r with each other,
      `C_ij = r + (1 - r) [i = j]`, and those of different units are independent;
    - a matrix [rows, rows], where the weights are a matrix [rows, columns] with one
      column per unit (a kernel [3, 3, 2, 8] has 18 rows): the weights of a unit have
      this covariance, and those of different units are independent. A convolution's
      kernel may be smooth in this way (Fortuin et al. 2022);
    - a matrix [n, n] over all n weights of the tensor, in the order of `numpy.ravel`.

    Its KL divergence from `mean_field_normal`, `full_covariance_normal`,
    `low_rank_normal` and `matrix_normal` is in closed form, but for a full
    `matrix_normal` under a matrix [n, n], where draws estimate it.

    A bias has one row. A matrix that does not fit the bias needs a `bias_prior` beside
    it.

    Example:

    >>> import numpy as np, tfbbb
    >>> places = np.arange(5)
    >>> smooth = np.exp(-0.5 * (places[:, None] - places) ** 2) + 0.01 * np.eye(5)
    >>> layer = tfbbb.layers.DenseVariational(
    ...     4,
    ...     prior=tfbbb.priors.CorrelatedNormal(smooth, scale=1.0),
    ...     bias_prior="normal",
    ... )

    Args:
        correlation: A number from -1 to 1, both excluded, or a matrix, symmetric and
            positive definite. A matrix with another diagonal than 1 scales the weights.
        scale: `s`, a positive number, or `"fan_in"` for `1 / sqrt(fan_in)`.

    Raises:
        ValueError: The matrix is not symmetric and positive definite; or, when built,
            it does not fit the weight, or the weight has too many rows for a number
            this negative or for a matrix.
    """

    def __init__(self, correlation: Correlation = 0.5, scale: Scale = "fan_in"):
        super().__init__(scale)
        self.correlation = _checked_correlation(correlation)
        # Inverse root and half the log determinant of C by its size.
        self._known: dict[int, tuple[np.ndarray, float]] = {}

    def add_variables(
        self, add_weight: AddWeight, shape: Sizes, fan_in: int, path: str
    ) -> dict[str, keras.Variable]:
        size, rows = math.prod(shape), matrix_sides(shape)[0]
        if isinstance(self.correlation, float):
            if rows > MAX_COVARIANCE:
                raise ValueError(
                    "The prior 'correlated_normal' is for weights of at most "
                    f"{MAX_COVARIANCE} rows. Received: {path!r} with {rows} rows"
                )
            if self.correlation * (rows - 1) <= -1.0:
                raise ValueError(
                    f"Of {rows} weights, all pairs cannot have a correlation of less "
                    f"than -1 / {rows - 1}. Received: correlation={self.correlation} "
                    f"for {path!r} of shape {shape}"
                )
        elif len(self.correlation) not in (rows, size):
            raise ValueError(
                f"A weight of shape {shape} needs a matrix of {rows} rows (for each "
                f"unit) or of {size} rows (for all weights); pass `bias_prior='normal'`"
                " beside a matrix for the kernel. Received: a matrix of "
                f"{len(self.correlation)} rows for {path!r}"
            )
        return {}

    def covers_units(self, shape: Sizes) -> bool:
        """Whether the weights of different units are independent."""
        if isinstance(self.correlation, float):
            return True
        return len(self.correlation) == matrix_sides(shape)[0]

    def standardized(self, weights: Tensor, shape: Sizes, fan_in: int) -> Tensor:
        """Returns the weights as independent standard normals under the prior.

        They are `z = L^-1 w / s`, with the lower-triangular L of `C = L L^T`.

        Args:
            weights: [..., *shape].
            shape: Shape of the weight tensor.
            fan_in: Number of inputs that one output unit sums over.

        Returns:
            [..., rows, columns], or [..., n, 1] for a matrix over all weights.
        """
        matrix = self._sides(shape)
        values = reshape_last_axes(weights, len(shape), matrix)
        inverse, _ = self._inverse_root(matrix[0])
        root = tf.constant(inverse / self.scale_for(fan_in), values.dtype)
        return tf.linalg.matmul(root, values)

    def precisions(self, shape: Sizes, fan_in: int) -> np.ndarray:
        """Returns the diagonal of the inverse covariance, of the weight's shape."""
        rows, columns = self._sides(shape)
        inverse, _ = self._inverse_root(rows)
        diagonal = np.square(inverse).sum(axis=0) / self.scale_for(fan_in) ** 2
        return np.repeat(diagonal, columns).reshape(shape)

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: Sizes, fan_in: int
    ) -> Tensor:
        standardized = self.standardized(weights, shape, fan_in)
        squares = tf.reduce_sum(tf.square(standardized), axis=[-2, -1])
        return self.log_prob_of_squares(squares, shape, fan_in)

    def log_prob_of_squares(self, squares: Tensor, shape: Sizes, fan_in: int) -> Tensor:
        """Returns log p of weights whose standardised squares add up to `squares`."""
        rows, columns = self._sides(shape)
        _, half_log_determinant = self._inverse_root(rows)
        size = math.prod(shape)
        normalizer = columns * half_log_determinant
        normalizer += size * (math.log(self.scale_for(fan_in)) + HALF_LOG_2PI)
        return -0.5 * squares - normalizer

    def _sides(self, shape: Sizes) -> tuple[int, int]:
        if self.covers_units(shape):
            return matrix_sides(shape)
        return math.prod(shape), 1

    def _inverse_root(self, rows: int) -> tuple[np.ndarray, float]:
        """Returns L^-1 and log det L of `C = L L^T`, in float64."""
        if rows not in self._known:
            if isinstance(self.correlation, float):
                covariance = np.full((rows, rows), self.correlation)
                np.fill_diagonal(covariance, 1.0)
            else:
                covariance = np.asarray(self.correlation)
            root = np.linalg.cholesky(covariance)
            inverse = np.tril(np.linalg.inv(root))
            self._known[rows] = inverse, float(np.log(np.diag(root)).sum())
        return self._known[rows]


def _checked_correlation(given: Any) -> float | tuple[tuple[float, ...], ...]:
    if is_finite_number(given) and -1.0 < given < 1.0:
        return float(given)
    message = (
        "`correlation` must be a number between -1 and 1 or a symmetric, positive "
        f"definite matrix of at most {MAX_COVARIANCE} rows. Received: "
    )
    try:
        matrix = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{message}correlation={given!r}") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{message}correlation={given!r:.200}")
    if len(matrix) > MAX_COVARIANCE:
        raise ValueError(f"{message}a matrix of {len(matrix)} rows")
    if not (np.isfinite(matrix).all() and np.allclose(matrix, matrix.T, rtol=1e-6)):
        raise ValueError(f"{message}a matrix that is not symmetric or not finite")
    matrix = 0.5 * (matrix + matrix.T)
    least = float(np.linalg.eigvalsh(matrix)[0])
    # Below this, single precision could not tell the covariance from a singular one.
    if least <= 1e-7 * float(matrix.diagonal().max()):
        raise ValueError(f"{message}a matrix whose least eigenvalue is {least:.3g}")
    return cast(tuple[tuple[float, ...], ...], tuple(map(tuple, matrix.tolist())))
