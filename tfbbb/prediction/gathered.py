"""The rows of a dataset, gathered into arrays, and sparse matrices."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tfbbb.base.lazy import np
from tfbbb.base.nested import map_leaves
from tfbbb.base.types import ArrayLike, DType


class SparseRows:
    """A matrix of SciPy in CSR form; an index returns rows as a dense array."""

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


def gathered(
    x: ArrayLike, y: ArrayLike = None, sample_weight: ArrayLike = None
) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
    """Returns inputs, targets and weights, of a dataset as one pass gives them."""
    batches = _batches(x)
    if batches is None:
        return SparseRows.of(x), y, sample_weight
    kind = type(x).__name__
    for name, of, given in (
        ("y", "targets", y),
        ("sample_weight", "weights", sample_weight),
    ):
        if given is not None:
            raise ValueError(
                f"The {of} of a dataset are in its batches: leave `{name}` out. "
                f"Received: x of type {kind}, {name} of type {type(given).__name__}"
            )
    rows = [_parts(batch) for batch in batches]
    if not rows:
        raise ValueError(
            "There are no rows: the dataset has no batches, or an iterator was read "
            f"before. Received: x of type {kind}"
        )
    try:
        return map_leaves(_joined, *rows) if len(rows) > 1 else rows[0]
    except (TypeError, ValueError) as error:
        raise ValueError(
            "Every batch needs the same structure, and a first dimension, its rows: "
            "batch a dataset by `dataset.batch(32)`. "
            f"Received: x of type {kind} ({error!s:.200})"
        ) from None


def _batches(x: object) -> Iterable[ArrayLike] | None:
    """Returns the batches of a dataset, None for anything else."""
    # A program that loads an exported model has neither library.
    keras = sys.modules.get("keras")
    if keras is not None and isinstance(x, keras.utils.PyDataset):
        if x.num_batches is None:
            raise _endless(x)
        return (x[index] for index in range(x.num_batches))
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and isinstance(x, tensorflow.data.Dataset):
        if int(x.cardinality()) == tensorflow.data.INFINITE_CARDINALITY:
            raise _endless(x)
        return x
    return x if isinstance(x, Iterator) else None


def _parts(batch: ArrayLike) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
    """Returns inputs, targets and weights of a batch."""
    # As Keras unpacks a batch, which may come in a list.
    given = batch if isinstance(batch, tuple | list) else (batch,)
    x, *others = (*given, None, None)[:3]
    y, weights = (None if part is None else np.asarray(part) for part in others)
    return map_leaves(_array, x), y, weights


def _array(x: ArrayLike) -> ArrayLike:
    rows = SparseRows.of(x)
    return rows if isinstance(rows, SparseRows) else np.asarray(x)


def _joined(*parts: ArrayLike) -> ArrayLike:
    if isinstance(parts[0], SparseRows):
        return parts[0].with_rows_of(*parts[1:])
    return None if parts[0] is None else np.concatenate(parts)


def _endless(x: object) -> ValueError:
    return ValueError(
        "The rows of a dataset are gathered, so it must end: leave `repeat()` out, or "
        f"take its first batches by `take`. Received: x of type {type(x).__name__} "
        "without end"
    )
