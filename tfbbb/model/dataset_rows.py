"""How many different rows a `tf.data.Dataset` gives, read off its operations."""

import math

import tensorflow as tf

from tfbbb.base.private_apis import dataset_operation, drops_incomplete_batches

_BATCHES = {"Batch", "ParallelBatch", "PaddedBatch"}
# One element out for each element in.
_ONE_TO_ONE = {
    "Cache",
    "CopyToDevice",
    "DenseToRagged",
    "Map",
    "Options",
    "ParallelMap",
    "Prefetch",
    "Restructured",
    "Shuffle",
    "Snapshot",
}
# Some of the elements of one input.
_PARTS = {"Take", "Skip", "Shard"}


def distinct_rows(dataset: tf.data.Dataset, through_parts: bool = False) -> int | None:
    """Returns the number of different rows in batches, None if it cannot be read off.

    Rows that `repeat` gives again count once, as do rows that a copy of the data with
    the same source gives in another form (`data.concatenate(data.map(flip))`). Rows
    that `drop_remainder` leaves out of one pass count, since a shuffled dataset leaves
    out others in the next.

    Example:

    >>> import tensorflow as tf
    >>> from tfbbb.model.dataset_rows import distinct_rows
    >>> rows = tf.data.Dataset.range(50)
    >>> distinct_rows(rows.repeat().shuffle(50).batch(16, drop_remainder=True))
    50
    """
    name, inputs = dataset_operation(dataset)
    if name in _BATCHES:
        rows = distinct_elements(inputs[0])
        return None if rows is None or math.isinf(rows) else int(rows)
    passed = _ONE_TO_ONE | {"Repeat"} | (_PARTS if through_parts else set())
    return distinct_rows(inputs[0], through_parts) if name in passed else None


def distinct_elements(dataset: tf.data.Dataset) -> float | None:
    """Returns the number of different elements: `math.inf`, or None if unknown."""
    name, inputs = dataset_operation(dataset)
    if name == "Repeat" or name in _ONE_TO_ONE:
        return distinct_elements(inputs[0])
    size = int(dataset.cardinality())
    known = None if size == tf.data.UNKNOWN_CARDINALITY else float(size)
    if size == tf.data.INFINITE_CARDINALITY:
        known = math.inf
    if name == "Zip":
        return _in_zip(inputs, size)
    if name in _PARTS:
        return _smallest(known, *map(distinct_elements, inputs))
    if name == "Concatenate":
        first, second = map(distinct_elements, inputs)
        if first is None or second is None:
            return None
        return max(first, second) if _have_one_source(inputs) else first + second
    if name in _BATCHES:
        # Batches of repeated elements differ in number from those of the elements.
        repeats = distinct_elements(inputs[0]) != int(inputs[0].cardinality())
        return None if repeats else known
    return known


def drops_remainder(dataset: tf.data.Dataset) -> bool:
    """Whether a pass over the batches may leave out some of `distinct_rows`."""
    name, inputs = dataset_operation(dataset)
    if name in _BATCHES:
        return drops_incomplete_batches(dataset)
    return len(inputs) == 1 and drops_remainder(inputs[0])


def joins_forms(dataset: tf.data.Dataset) -> bool:
    """Whether a dataset concatenates forms of the same rows, e.g. mirrored images."""
    name, inputs = dataset_operation(dataset)
    if name == "Concatenate" and _have_one_source(inputs):
        return True
    return any(map(joins_forms, inputs))


def _in_zip(parts: list[tf.data.Dataset], size: int) -> float | None:
    """Returns the number of different elements of zipped parts.

    The parts with the size of the zip end the pass. Longer ones, such as a constant
    that repeats for ever or a counter of seeds, accompany them.
    """
    ending = [
        distinct_elements(part) for part in parts if int(part.cardinality()) == size
    ]
    if None in ending:
        return None
    return max((n for n in ending if n and math.isfinite(n)), default=math.inf)


def _smallest(*numbers: float | None) -> float | None:
    known = [number for number in numbers if number is not None]
    return min(known) if len(known) == len(numbers) else None


def _have_one_source(parts: list[tf.data.Dataset]) -> bool:
    first, second = map(_sources, parts)
    return bool(first) and first == second


def _sources(dataset: tf.data.Dataset) -> frozenset[int]:
    """Returns the identities of the datasets that a dataset has every element of.

    The set is empty if an operation may leave out elements.
    """
    name, inputs = dataset_operation(dataset)
    if not inputs:
        return frozenset({id(dataset)})
    if name in _ONE_TO_ONE or name in {"Repeat", "Concatenate", "Zip"}:
        parts = [_sources(part) for part in inputs]
        return frozenset.union(*parts) if all(parts) else frozenset()
    return frozenset()
