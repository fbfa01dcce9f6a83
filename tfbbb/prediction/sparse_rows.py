"""Inputs of which most numbers are 0, in the memory of those that are not."""

from __future__ import annotations

from typing import Any

from tfbbb.base.lazy import np
from tfbbb.base.types import ArrayLike, DType


class SparseRows:
    """A matrix that keeps its non-zeros; an index returns rows as a dense array.

    Args:
        matrix: A matrix of SciPy in CSR form, [rows, columns].
    """

    ndim = 2

    def __init__(self, matrix: Any):
        self._matrix = matrix
        self.shape: tuple[int, int] = matrix.shape

    @classmethod
    def of(cls, value: ArrayLike) -> Any:
        """Returns the rows of a sparse matrix, of TensorFlow or SciPy; else `value`."""
        # A `tf.SparseTensor`, or what a dataset gives as arrays.
        shape = getattr(value, "dense_shape", None)
        if shape is not None and len(shape) == 2:
            from scipy.sparse import coo_matrix

            places = np.asarray(value.indices).T
            entries = np.asarray(value.values), (places[0], places[1])
            value = coo_matrix(entries, tuple(np.asarray(shape).tolist()))
        return cls(value.tocsr()) if hasattr(value, "tocsr") else value

    @property
    def dtype(self) -> Any:
        return self._matrix.dtype

    def astype(self, dtype: DType) -> SparseRows:
        return SparseRows(self._matrix.astype(dtype))

    def take(self, rows: ArrayLike) -> SparseRows:
        """Returns some rows without their zeros."""
        return SparseRows(self._matrix[rows])

    def with_rows_of(self, *others: SparseRows) -> SparseRows:
        """Returns the rows of this matrix and of others, one after the other."""
        from scipy.sparse import vstack

        parts = [self._matrix, *(other._matrix for other in others)]
        return SparseRows(vstack(parts, format="csr"))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        return self._matrix[rows].toarray()

    def __array__(self, dtype: DType = None, copy: bool | None = None) -> np.ndarray:
        return self._matrix.toarray().astype(dtype or self.dtype, copy=False)
