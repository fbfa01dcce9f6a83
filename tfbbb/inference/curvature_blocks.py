"""Blocks of a curvature matrix: log determinants and inverses with a prior added."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from tfbbb.bayes.posteriors import JointNormal
from tfbbb.bayes.variational_weight import VariationalWeight


@dataclass(frozen=True, eq=False)
class Block:
    """The curvature C of some weight tensors, to which a normal prior's is added.

    The precision matrix is `factor * C + diag(prior)`; `prior` has a precision per
    tensor.
    """

    tensors: tuple[int, ...]

    def log_determinant(self, prior: np.ndarray, factor: float) -> float:
        """Returns the log determinant of the precision, in nats."""
        raise NotImplementedError

    def variances(self, prior: np.ndarray, factor: float) -> list[float]:
        """Returns the sum of the variances of each tensor's weights."""
        raise NotImplementedError

    def set_posterior(
        self, weights: Sequence[VariationalWeight], prior: np.ndarray, factor: float
    ) -> None:
        """Sets the covariance of the weights' posterior to the inverse precision."""
        raise NotImplementedError


class EigenBlock(Block):
    """A curvature whose precision is diagonal in a basis that the prior leaves."""

    def precision(self, prior: np.ndarray, factor: float) -> np.ndarray:
        """Returns the eigenvalues of the precision."""
        raise NotImplementedError

    def log_determinant(self, prior: np.ndarray, factor: float) -> float:
        return float(np.log(self.precision(prior, factor)).sum())

    def variances(self, prior: np.ndarray, factor: float) -> list[float]:
        return [float((1.0 / self.precision(prior, factor)).sum())]


@dataclass(frozen=True, eq=False)
class DiagonalBlock(EigenBlock):
    """A diagonal curvature of one tensor, [n]."""

    values: np.ndarray

    def precision(self, prior: np.ndarray, factor: float) -> np.ndarray:
        """Returns the diagonal of the precision, [n]."""
        return factor * self.values + prior

    def set_posterior(
        self, weights: Sequence[VariationalWeight], prior: np.ndarray, factor: float
    ) -> None:
        (weight,) = weights
        log_scale = -0.5 * np.log(self.precision(prior, factor))
        weight.variables["log_scale"].assign(log_scale.reshape(weight.shape))


@dataclass(frozen=True, eq=False)
class KroneckerBlock(EigenBlock):
    """The curvature `A x B` of one tensor as a matrix: `C_ij,kl = A_ik B_jl`."""

    rows: np.ndarray
    columns: np.ndarray

    @functools.cached_property
    def eigen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvalues [R, C] of the product, and the eigenvectors of A and of B."""
        row_values, row_vectors = linalg.eigh(self.rows, driver="evd")
        column_values, column_vectors = linalg.eigh(self.columns, driver="evd")
        values = np.outer(np.maximum(row_values, 0.0), np.maximum(column_values, 0.0))
        return values, row_vectors, column_vectors

    def precision(self, prior: np.ndarray, factor: float) -> np.ndarray:
        """Returns the eigenvalues of the precision, [R, C]."""
        return factor * self.eigen[0] + prior

    def set_posterior(
        self, weights: Sequence[VariationalWeight], prior: np.ndarray, factor: float
    ) -> None:
        (weight,) = weights
        _, row_vectors, column_vectors = self.eigen
        log_scale = -0.5 * np.log(self.precision(prior, factor))
        weight.variables["log_scale"].assign(log_scale)
        weight.variables["row_basis"].assign(row_vectors)
        weight.variables["column_basis"].assign(column_vectors)


@dataclass(frozen=True, eq=False)
class DenseBlock(Block):
    """A full curvature matrix [n, n] of all tensors."""

    sizes: tuple[int, ...]
    matrix: np.ndarray

    def precision(self, prior: np.ndarray, factor: float) -> np.ndarray:
        """Returns the precision, [n, n]."""
        precision = factor * self.matrix
        precision[np.diag_indices_from(precision)] += np.repeat(prior, self.sizes)
        return precision

    def log_determinant(self, prior: np.ndarray, factor: float) -> float:
        factorised = linalg.cholesky(self.precision(prior, factor), lower=True)
        return float(2.0 * np.log(np.diagonal(factorised)).sum())

    def variances(self, prior: np.ndarray, factor: float) -> list[float]:
        each = (self.scale_tril(prior, factor) ** 2).sum(axis=1)
        return [
            float(part.sum()) for part in np.split(each, np.cumsum(self.sizes)[:-1])
        ]

    def scale_tril(self, prior: np.ndarray, factor: float) -> np.ndarray:
        """Returns the lower triangular L with `L L^T` the inverse of the precision."""
        # The Cholesky factor of the matrix with its order reversed gives an upper
        # triangular R with R R^T the precision, so L = R^-T is lower triangular.
        reversed_ = self.precision(prior, factor)[::-1, ::-1]
        root = linalg.cholesky(reversed_, lower=True)
        inverse = linalg.solve_triangular(
            root, np.eye(len(root)), lower=True, overwrite_b=True, check_finite=False
        )
        return np.ascontiguousarray(inverse[::-1, ::-1].T)

    def set_posterior(
        self, weights: Sequence[VariationalWeight], prior: np.ndarray, factor: float
    ) -> None:
        set_scale_tril(weights, self.scale_tril(prior, factor))


def set_scale_tril(
    weights: Sequence[VariationalWeight], scale_tril: np.ndarray
) -> None:
    """Sets the covariance `L L^T` of the weights of some tensors together, L [D, D]."""
    first = 0
    for weight in weights:
        variables = weight.variables
        if isinstance(weight.posterior, JointNormal):
            variables["factor"].assign(scale_tril[first : first + weight.size])
            variables["first"].assign(float(first))
            first += weight.size
            continue
        scales = np.diagonal(scale_tril)
        variables["log_scale"].assign(np.log(scales))
        if len(scales) > 1:
            import tensorflow_probability as tfp

            lower = np.tril((scale_tril / scales[:, np.newaxis])[1:, :-1])
            correlations = tfp.math.fill_triangular_inverse(lower)
            variables["correlations"].assign(correlations)
