"""Blocks of a curvature matrix: log determinants and inverses with a prior added."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg


@dataclass(frozen=True, eq=False)
class Block:
    """The curvature C of some weight tensors, to which a prior's is added.

    The precision matrix is `factor * C + diag(prior)`. `prior` is a list with the
    prior's curvature [n] of each tensor of the block.

    Attributes:
        tensors: The numbers of the weight tensors.
    """

    tensors: tuple[int, ...]

    def log_determinant(self, prior: Sequence[np.ndarray], factor: float) -> float:
        """Returns the log determinant of the precision, in nats."""
        raise NotImplementedError

    def traces(self, prior: Sequence[np.ndarray], factor: float) -> list[float]:
        """Returns `sum_i prior_i Var_i` over the weights i of each tensor.

        Var are the variances, the diagonal of the inverse of the precision.
        """
        raise NotImplementedError

    def variances(self, prior: Sequence[np.ndarray], factor: float) -> list[np.ndarray]:
        """Returns the variances of each tensor, [n] each."""
        raise NotImplementedError

    def extreme_eigenvalues(
        self, prior: Sequence[np.ndarray], factor: float
    ) -> tuple[float, float]:
        """Returns the smallest and the largest eigenvalue of the precision.

        Where computing them takes long, bounds whose ratio estimates the condition.
        """
        raise NotImplementedError

    def without_negative(self) -> tuple["Block", int]:
        """Returns the block without negative eigenvalues, and the number of these."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class DiagonalBlock(Block):
    """A diagonal curvature of one tensor.

    Attributes:
        values: The diagonal, [n].
    """

    values: np.ndarray

    def precision(self, prior: Sequence[np.ndarray], factor: float) -> np.ndarray:
        """Returns the diagonal of the precision, [n]."""
        return factor * self.values + prior[0]

    def log_determinant(self, prior: Sequence[np.ndarray], factor: float) -> float:
        return float(np.log(_positive(self.precision(prior, factor))).sum())

    def traces(self, prior: Sequence[np.ndarray], factor: float) -> list[float]:
        return [float((prior[0] / self.precision(prior, factor)).sum())]

    def variances(self, prior: Sequence[np.ndarray], factor: float) -> list[np.ndarray]:
        return [1.0 / _positive(self.precision(prior, factor))]

    def extreme_eigenvalues(
        self, prior: Sequence[np.ndarray], factor: float
    ) -> tuple[float, float]:
        precision = self.precision(prior, factor)
        return float(precision.min()), float(precision.max())

    def without_negative(self) -> tuple[Block, int]:
        negative = int((self.values < 0).sum())
        return DiagonalBlock(self.tensors, np.maximum(self.values, 0.0)), negative


@dataclass(frozen=True, eq=False)
class KroneckerBlock(Block):
    """The curvature `A x B` of one tensor as a matrix: `C_ij,kl = A_ik B_jl`.

    Attributes:
        rows: A, [R, R].
        columns: B, [C, C].
    """

    rows: np.ndarray
    columns: np.ndarray

    @functools.cached_property
    def eigen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvalues [R, C] of the product, and the eigenvectors of A and of B."""
        row_values, row_vectors = linalg.eigh(self.rows, driver="evd")
        column_values, column_vectors = linalg.eigh(self.columns, driver="evd")
        values = np.outer(np.maximum(row_values, 0.0), np.maximum(column_values, 0.0))
        return values, row_vectors, column_vectors

    def precision(self, prior: Sequence[np.ndarray], factor: float) -> np.ndarray:
        """Returns the eigenvalues of the precision, [R, C]."""
        return factor * self.eigen[0] + _one_value(prior[0])

    def log_determinant(self, prior: Sequence[np.ndarray], factor: float) -> float:
        return float(np.log(_positive(self.precision(prior, factor))).sum())

    def traces(self, prior: Sequence[np.ndarray], factor: float) -> list[float]:
        precision = self.precision(prior, factor)
        return [float((_one_value(prior[0]) / precision).sum())]

    def variances(self, prior: Sequence[np.ndarray], factor: float) -> list[np.ndarray]:
        _, row_vectors, column_vectors = self.eigen
        inverse = 1.0 / _positive(self.precision(prior, factor))
        return [(row_vectors**2 @ inverse @ (column_vectors**2).T).ravel()]

    def extreme_eigenvalues(
        self, prior: Sequence[np.ndarray], factor: float
    ) -> tuple[float, float]:
        precision = self.precision(prior, factor)
        return float(precision.min()), float(precision.max())

    def without_negative(self) -> tuple[Block, int]:
        return self, 0


@dataclass(frozen=True, eq=False)
class DenseBlock(Block):
    """A full curvature matrix of one or more tensors.

    Attributes:
        sizes: Number of weights of each tensor.
        matrix: The curvature, [n, n].
    """

    sizes: tuple[int, ...]
    matrix: np.ndarray

    @functools.cached_property
    def eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors of the curvature."""
        return linalg.eigh(self.matrix, driver="evd")

    def decompose(self) -> None:
        """Computes the eigenvectors, which speed up calls with one precision."""
        _ = self.eigen

    def precision(self, prior: Sequence[np.ndarray], factor: float) -> np.ndarray:
        """Returns the precision, [n, n]."""
        precision = factor * self.matrix
        precision[np.diag_indices_from(precision)] += np.concatenate(prior)
        return precision

    def log_determinant(self, prior: Sequence[np.ndarray], factor: float) -> float:
        if self._spectrum_serves(prior):
            return float(np.log(_positive(self._spectrum(prior, factor))).sum())
        factorised = linalg.cholesky(self.precision(prior, factor), lower=True)
        return float(2.0 * np.log(np.diagonal(factorised)).sum())

    def traces(self, prior: Sequence[np.ndarray], factor: float) -> list[float]:
        if self._spectrum_serves(prior) and len(self.sizes) == 1:
            return [float((prior[0][0] / self._spectrum(prior, factor)).sum())]
        if self._spectrum_serves(prior):
            weights = self.eigen[1] ** 2 / self._spectrum(prior, factor)
            variances = self._by_tensor(weights.sum(axis=1))
        else:
            variances = self.variances(prior, factor)
        return [float(p @ v) for p, v in zip(prior, variances, strict=True)]

    def variances(self, prior: Sequence[np.ndarray], factor: float) -> list[np.ndarray]:
        return self._by_tensor((self.scale_tril(prior, factor) ** 2).sum(axis=1))

    def scale_tril(self, prior: Sequence[np.ndarray], factor: float) -> np.ndarray:
        """Returns the lower triangular L with `L L^T` the inverse of the precision."""
        # The Cholesky factor of the matrix with its order reversed gives an upper
        # triangular R with R R^T the precision, so L = R^-T is lower triangular.
        reversed_ = self.precision(prior, factor)[::-1, ::-1]
        root = linalg.cholesky(reversed_, lower=True)
        inverse = linalg.solve_triangular(
            root, np.eye(len(root)), lower=True, overwrite_b=True, check_finite=False
        )
        return np.ascontiguousarray(inverse[::-1, ::-1].T)

    def extreme_eigenvalues(
        self, prior: Sequence[np.ndarray], factor: float
    ) -> tuple[float, float]:
        if self._spectrum_serves(prior):
            values = self._spectrum(prior, factor)
            return float(values.min()), float(values.max())
        precision = self.precision(prior, factor)
        norm = np.abs(precision).sum(axis=0).max()
        factorised = linalg.cholesky(precision, lower=True)
        reciprocal, _ = linalg.lapack.dpocon(factorised, norm, uplo="L")
        return float(norm * reciprocal), float(norm)

    def without_negative(self) -> tuple[Block, int]:
        values, vectors = self.eigen
        threshold = -1e-10 * max(abs(values[0]), abs(values[-1]))
        negative = int((values < threshold).sum())
        if not negative:
            return self, 0
        matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return DenseBlock(self.tensors, self.sizes, matrix), negative

    def _spectrum_serves(self, prior: Sequence[np.ndarray]) -> bool:
        # Eigenvectors take several times as long as a Cholesky factor: use them where
        # they are known.
        return "eigen" in vars(self) and np.ptp(np.concatenate(prior)) == 0

    def _spectrum(self, prior: Sequence[np.ndarray], factor: float) -> np.ndarray:
        return factor * self.eigen[0] + prior[0][0]

    def _by_tensor(self, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, np.cumsum(self.sizes)[:-1])


def _one_value(prior: np.ndarray) -> float:
    if np.ptp(prior) != 0:
        raise ValueError(
            "A Kronecker-factored curvature needs a prior with the same curvature for "
            "all weights of a tensor, such as `tfbbb.priors.Normal`; or use "
            '`structure="diagonal"`, `"layer"` or `"full"`. '
            f"Received: curvatures between {prior.min():.3g} and {prior.max():.3g}"
        )
    return float(prior[0])


def _positive(precision: np.ndarray) -> np.ndarray:
    if not (precision > 0).all():
        raise linalg.LinAlgError("The precision is not positive definite.")
    return precision
