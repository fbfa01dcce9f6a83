"""The rows of partitions: splitting arrays, and reading rows where they live."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tfbbb.base.numbers import int32, positive_integer
from tfbbb.base.types import ArrayLike, Structure

Rows = tuple[Structure, ArrayLike]
# The rows (x, y) of a partition, or a function that returns them.
Source = Rows | Callable[[], Rows]


def split_rows(
    x: Structure, y: ArrayLike, partitions: int, seed: int = 0
) -> list[Rows]:
    """Splits rows at random into partitions of equal size, or one row more.

    Example:

    >>> import numpy as np
    >>> from tfbbb.lab.distributed import split_rows
    >>> parts = split_rows(np.zeros((10, 2)), np.zeros(10), partitions=4)
    >>> [len(y) for _, y in parts]
    [3, 3, 2, 2]

    Args:
        x: Inputs, an array [N, ...], or a structure of arrays.
        y: Targets, [N, ...].
        partitions: Number K of partitions.
        seed: Seed of the split.

    Returns:
        The rows (x, y) of each partition.

    Raises:
        ValueError: There are fewer rows than partitions, or x and y differ in length.
    """
    positive_integer("partitions", partitions)
    x, y = _arrays(x, y)
    if len(y) < partitions:
        raise ValueError(
            "Every partition needs a row; use at most as many partitions as rows. "
            f"Received: partitions={partitions} for {len(y)} rows"
        )
    order = np.random.default_rng(int32("seed", seed, least=0)).permutation(len(y))
    return [
        (_map(operator.itemgetter(rows), x), y[rows])
        for rows in np.array_split(order, partitions)
    ]


def read_rows(source: Source, partition: int) -> Rows:
    """Returns inputs and targets of a partition, as arrays."""
    given = source() if callable(source) else source
    if not (isinstance(given, tuple | list) and len(given) == 2):
        raise ValueError(
            "A partition must be a pair (x, y), or a function that returns one. "
            f"Received: {type(given).__name__} for partition {partition}"
        )
    x, y = _arrays(*given)
    if not len(y):
        raise ValueError(
            "A partition must have rows; leave empty partitions out. "
            f"Received: 0 rows in partition {partition}"
        )
    return x, y


def _arrays(x: Structure, y: ArrayLike) -> Rows:
    x, y = _map(np.asarray, x), np.asarray(y)
    lengths: list[int] = []
    _map(lambda leaf: lengths.append(leaf.shape[0] if leaf.ndim else 0), x)
    if {*lengths} != {len(y) if y.ndim else -1}:
        raise ValueError(
            "Inputs and targets must have one entry for each row. "
            f"Received: inputs of {lengths} rows, targets of shape {y.shape}"
        )
    return x, y


def _map(function: Callable[[ArrayLike], Any], x: Structure) -> Structure:
    if not isinstance(x, dict | list | tuple):
        return function(x)
    # A worker of one array need not wait for the import of Keras.
    from keras import tree

    return tree.map_structure(function, x)
