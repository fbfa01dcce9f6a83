"""The rows that `fit` trains on, read once: their number, targets and weights."""

import dataclasses
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.private_apis import dataset_operation, drops_incomplete_batches
from tfbbb.base.types import ArrayLike, Structure

# Weights whose mean is further from 1 than this factor are hardly meant as counts.
_FAR_FROM_ROWS = 3.0
_BATCHES = {"Batch", "ParallelBatch", "PaddedBatch"}
# No new element out for an element in.
_NOTHING_NEW = {
    *("Cache", "CopyToDevice", "DenseToRagged", "Map", "Options", "ParallelMap"),
    *("Prefetch", "Repeat", "Restructured", "Shuffle", "Snapshot"),
}
# Some of the elements.
_PARTS = {"Take", "Skip", "Shard"}


@dataclasses.dataclass(frozen=True)
class TrainingRows:
    """The training rows of one `fit`.

    `targets` are None if they were not read, and `size`, the number N of rows or the
    sum of their weights, is NaN if it is not known.

    Attributes:
        target_weights: How much each target counts, [rows, places...] or [rows]: 0 for
            masked steps. None if all targets count alike.
        member_sizes: Rows, or their total weight, of each member; None for all rows.
        member_temperatures: The temperature of each member relative to the schedule.
        mean_weights: The mean weight of a row, [members] or [1]. Each step divides by
            it, and not by the weights of its batch, so that the gradient is unbiased.
        exposures: The exposure of each target, [rows, places..., 1]; None without.
    """

    targets: np.ndarray | None
    size: float
    target_weights: np.ndarray | None = None
    member_sizes: np.ndarray | None = None
    member_temperatures: np.ndarray | None = None
    mean_weights: np.ndarray | None = None
    exposures: np.ndarray | None = None

    @property
    def counted(self) -> np.ndarray | None:
        """Which targets count, [rows, places...] or [rows]; None if all do."""
        return None if self.target_weights is None else self.target_weights != 0

    @property
    def kl_factors(self) -> np.ndarray | None:
        """`(T_k / N_k) / (1 / N)` of each member k, [members]; None if all are 1."""
        factors = None
        if self.member_sizes is not None:
            factors = self.size / np.asarray(self.member_sizes, np.float32)
        if self.member_temperatures is not None:
            relative = np.asarray(self.member_temperatures, np.float32)
            factors = relative if factors is None else factors * relative
        return factors


def training_rows(
    x: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike = None,
    validation_split: float = 0.0,
    dataset_size: float | None = None,
    steps_per_epoch: int | None = None,
    num_places: int = 0,
    needs_size: bool = True,
    needs_targets: bool = True,
    mask: Callable[[Structure], np.ndarray | None] = lambda inputs: None,
    observe: Callable[[Structure], object] = lambda inputs: None,
) -> TrainingRows:
    """Counts the rows that `fit(x, y, ...)` trains on, and reads their targets.

    Datasets are read once, unless N and all that the targets tell are known, and rows
    that a dataset repeats count once. `mask` returns which places of inputs count,
    [rows, places...], and `observe` gets the inputs of each batch, or `x`.
    """
    if dataset_size is not None and not 0 < dataset_size < math.inf:
        raise ValueError(
            "`dataset_size` must be the positive number of training rows. "
            f"Received: dataset_size={dataset_size}"
        )
    known = dataset_size is not None or not needs_size
    reader = _Reader(num_places, mask, observe)
    if y is not None:
        _check_arrays(x)
        reader.read([(x, *_arrays(y, sample_weight, validation_split))])
        return reader.rows(dataset_size)
    if isinstance(x, tf.data.Dataset):
        if len(_parts(x)) < 2:
            raise _no_targets(x)
        distinct = distinct_rows(x)
        read_off = known or (distinct is not None and len(_parts(x)) == 2)
        if read_off and not needs_targets:
            return TrainingRows(None, dataset_size or distinct or math.nan)
        return _rows_of_dataset(x, reader, dataset_size, steps_per_epoch, known)
    if isinstance(x, keras.utils.PyDataset):
        number = x.num_batches or steps_per_epoch
        if number is not None and (needs_targets or not known):
            if x.num_batches is None and not known:
                _warn_of_steps(number)
            reader.read((x[index] for index in range(number)), dataset_size)
            return reader.rows(dataset_size)
    elif x is None or hasattr(x, "__array__") or isinstance(x, list | tuple | dict):
        raise _no_targets(x)
    if not known:
        raise _unknown_size(type(x).__name__)
    return TrainingRows(targets=None, size=dataset_size or math.nan)


def _rows_of_dataset(
    dataset: tf.data.Dataset,
    reader: "_Reader",
    dataset_size: float | None,
    steps_per_epoch: int | None,
    known: bool,
) -> TrainingRows:
    """Reads the rows of a dataset once, or `dataset_size` rows where it is given."""
    distinct = distinct_rows(dataset)
    at_most, number = dataset_size or distinct, distinct_elements(dataset)
    if at_most is None and number is None:
        number = steps_per_epoch
        if not known:
            if number is None:
                raise _unknown_size("tf.data.Dataset of unknown or infinite length")
            _warn_of_steps(number)
        elif number is None and dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            return TrainingRows(targets=None, size=math.nan)
    reader.read(map(_as_arrays, itertools.islice(dataset, number)), at_most)
    if dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY and reader.num_rows:
        _check_can_be_read_again(dataset)
    different = reader.num_rows
    if distinct is not None:
        # A shuffled dataset leaves out other rows in the next pass.
        all_come = _drops_remainder(dataset) or distinct < different
        different = distinct if all_come else different
    return reader.rows(dataset_size, different)


def distinct_rows(dataset: tf.data.Dataset) -> int | None:
    """Returns the number of different rows in batches, None if it cannot be read off.

    Rows that `repeat` gives again count once.
    """
    name, inputs = dataset_operation(dataset)
    if name in _BATCHES:
        return distinct_elements(inputs[0])
    return distinct_rows(inputs[0]) if name in _NOTHING_NEW | _PARTS else None


def distinct_elements(dataset: tf.data.Dataset) -> int | None:
    """Returns the number of different elements, None if it is unknown or infinite."""
    name, inputs = dataset_operation(dataset)
    if name in _NOTHING_NEW:
        return distinct_elements(inputs[0])
    size = int(dataset.cardinality())
    known = [size] if size >= 0 else []
    if name in _PARTS and (before := distinct_elements(inputs[0])) is not None:
        known.append(before)
    return min(known, default=None)


def _drops_remainder(dataset: tf.data.Dataset) -> bool:
    """Whether a pass over the batches may leave out some of `distinct_rows`."""
    name, inputs = dataset_operation(dataset)
    if name in _BATCHES:
        return drops_incomplete_batches(dataset)
    return len(inputs) == 1 and _drops_remainder(inputs[0])


def _as_arrays(batch: Structure) -> Structure:
    """Returns a batch as arrays; sparse tensors stay, because `numpy` is slow there."""
    return tf.nest.map_structure(
        lambda x: x if isinstance(x, tf.SparseTensor) else x.numpy(), batch
    )


class _Reader:
    """Reads batches of training rows: their targets, weights and masks."""

    def __init__(
        self,
        num_places: int,
        mask: Callable[[Structure], np.ndarray | None],
        observe: Callable[[Structure], object],
    ):
        self.num_rows = 0
        self._num_places = num_places
        self._mask = mask
        self._observe = observe
        self._targets: list[np.ndarray] = []
        self._weights: list[np.ndarray | None] = []
        self._total = 0.0
        self._rows_have_weights = False

    def read(self, batches: Iterable[Structure], at_most: float | None = None) -> None:
        """Reads batches until the rows are `at_most` or more."""
        for batch in batches:
            inputs, targets, weights = keras.utils.unpack_x_y_sample_weight(
                tuple(batch) if isinstance(batch, list) else batch
            )
            if targets is None:
                raise _no_targets(batch)
            self._observe(inputs)
            targets = np.asarray(targets)
            places = targets.shape[: 1 + self._num_places]
            weights = checked_weights(weights, places, first_row=self.num_rows)
            self._targets.append(targets)
            self._weights.append(target_weights(weights, self._mask(inputs), places))
            self.num_rows += len(targets)
            if weights is None or weights.ndim > 1:
                self._total += len(targets)
            else:
                self._total += float(np.sum(weights))
                self._rows_have_weights = True
            if at_most is not None and self.num_rows >= at_most:
                break

    def rows(
        self, dataset_size: float | None, distinct: float | None = None
    ) -> TrainingRows:
        """Returns what was read."""
        total = self._total if dataset_size is None else dataset_size
        if not (self.num_rows and total > 0):
            raise ValueError(
                "There is nothing to train on: there are no training rows, or their "
                f"weights add up to 0. Received: total={total}"
            )
        mean_weight = self._total / self.num_rows
        targets, weights = _together(self._targets, self._weights, self._num_places)
        if dataset_size is None:
            if distinct is not None:
                total = distinct * mean_weight
            counts = "; if they are counts, pass the sum over the rows as "
            warn_if_far_from_rows(weights, f"{counts}`dataset_size`", stacklevel=5)
        has_mean = self._rows_have_weights and mean_weight > 0
        return TrainingRows(
            targets=targets,
            size=total,
            target_weights=weights,
            mean_weights=np.array([mean_weight]) if has_mean else None,
        )


def rows_of_generator(
    generator: Iterator[Structure], steps_per_epoch: int | None
) -> tuple[Iterator[Structure], float]:
    """Returns the generator and N: `steps_per_epoch` times the rows of a batch."""
    if steps_per_epoch is None:
        raise _unknown_size("generator")
    first = next(generator, None)
    if first is None:
        raise ValueError(
            "There is nothing to train on. Received: a generator that gives no batch"
        )
    _warn_of_steps(steps_per_epoch)

    def again() -> Iterator[Structure]:
        yield first
        yield from generator

    return again(), float(steps_per_epoch * len(tree.flatten(first)[0]))


def checked_weights(
    weights: ArrayLike, places: tuple[int, ...], first_row: int = 0
) -> np.ndarray | None:
    """Returns finite sample weights, [rows], or [rows, places...] for each place."""
    if weights is None:
        return None
    weights = np.asarray(weights, float)
    received = weights.shape
    if received[:1] == places[:1] and weights.size == places[0]:
        weights = weights.reshape(-1)
    elif weights.ndim == len(places) + 1 and received[-1] == 1:
        weights = weights[..., 0]
    if weights.shape not in (places[:1], places):
        by_place = f", or each target has one, {list(places)}" if places[1:] else ""
        raise ValueError(
            f"Every row has one sample weight, [{places[0]}]{by_place}. "
            f"Received: sample weights of shape {received}"
        )
    finite = np.isfinite(weights).reshape(len(weights), -1).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(
            "Every sample weight must be a finite number; give rows that should not "
            f"count the weight 0. Received: {weights[row]} in row {first_row + row}"
        )
    return weights


def target_weights(
    weights: np.ndarray | None, mask: np.ndarray | None, places: tuple[int, ...]
) -> np.ndarray | None:
    """Returns how much each target counts, [rows, places...], or None if all do."""
    product = None
    for factor in (weights, mask):
        if factor is not None:
            trailing = [1] * (len(places) - factor.ndim)
            wide = np.reshape(factor, [*factor.shape, *trailing]).astype(float)
            product = wide if product is None else product * wide
    return None if product is None else np.broadcast_to(product, places)


def _together(
    targets: list[np.ndarray], weights: list[np.ndarray | None], num_places: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Concatenates batches; shorter ones are filled up with targets of weight 0."""
    shapes = {batch.shape[1:] for batch in targets}
    lengths = {shape[:num_places] for shape in shapes}
    if len({shape[num_places:] for shape in shapes}) > 1 or (
        len({len(shape) for shape in lengths}) > 1
    ):
        raise ValueError(
            "The targets of all batches must have the same axes. "
            f"Received: targets of shapes {sorted(shapes)} without the rows"
        )
    if len(lengths) > 1 or any(batch is not None for batch in weights):
        longest = np.max([*lengths], axis=0).astype(int)
        filled = [
            _filled_up(
                np.ones(batch.shape[: 1 + num_places]) if weight is None else weight,
                longest,
            )
            for batch, weight in zip(targets, weights, strict=True)
        ]
        targets = [_filled_up(batch, longest) for batch in targets]
        return np.concatenate(targets), np.concatenate(filled)
    return np.concatenate(targets), None


def _filled_up(batch: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    missing = [(0, n - m) for n, m in zip(lengths, batch.shape[1:], strict=False)]
    rest = [(0, 0)] * (batch.ndim - 1 - len(missing))
    if batch.dtype == object or not any(after for _, after in missing):
        return batch
    return np.pad(batch, [(0, 0), *missing, *rest])


def warn_if_far_from_rows(
    weights: np.ndarray | None, counts: str, stacklevel: int = 2
) -> None:
    """Warns of weights that are hardly meant as numbers of rows."""
    if weights is None or not (weights != 0).any():
        return
    mean = float(weights[weights != 0].mean())
    if 1.0 / _FAR_FROM_ROWS <= mean <= _FAR_FROM_ROWS:
        return
    warnings.warn(
        "A sample weight is the number of times that its row counts, and the mean of "
        f"these weights is {mean:.3g}: the data count {mean:.3g} times as much beside "
        "the prior as without weights. If only the ratios of the weights matter, "
        f"divide them by their mean{counts}. Received: sample weights from "
        f"{weights.min():.3g} to {weights.max():.3g}",
        stacklevel=stacklevel + 1,
    )


def _warn_of_steps(steps: int) -> None:
    warnings.warn(
        f"The length of the data is not known, so that the {steps} steps of an epoch "
        "are taken for one pass over the training rows. Pass `dataset_size=N` if they "
        f"are not. Received: steps_per_epoch={steps}",
        stacklevel=6,
    )


def _check_can_be_read_again(dataset: tf.data.Dataset) -> None:
    if next(iter(dataset), None) is None:
        raise ValueError(
            "The dataset can be read only once, and reading its targets has read it to "
            "its end. Make it anew, call `model.likelihood.adapt(y)` with the training "
            "targets first, and pass `dataset_size=N` to `fit`, which then reads "
            "nothing before it trains. Received: a tf.data.Dataset over an iterator"
        )


def _parts(dataset: tf.data.Dataset) -> tuple[Structure, ...]:
    """Returns the parts of an element: inputs, targets and weights, if there are."""
    spec = dataset.element_spec
    return spec if isinstance(spec, tuple) else (spec,)


def _check_arrays(x: Structure) -> None:
    """Raises ValueError for lists of numbers, which Keras takes for many inputs."""
    plain = [leaf for leaf in tree.flatten(x) if isinstance(leaf, int | float | str)]
    if plain:
        raise ValueError(
            "Inputs must be arrays: a list of lists could be the rows of one input, or "
            "several inputs. Pass `np.asarray(x)`, or a list or dictionary of arrays. "
            f"Received: x of type {type(x).__name__} that holds {plain[0]!r} of type "
            f"{type(plain[0]).__name__}"
        )


def _arrays(
    y: ArrayLike, sample_weight: ArrayLike, validation_split: float
) -> tuple[np.ndarray, np.ndarray | None]:
    targets = np.asarray(y)
    # As Keras splits: the last rows are for validation, before any shuffling.
    kept = math.floor(len(targets) * (1.0 - validation_split))
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight)[:kept]
    return targets[:kept], sample_weight


def _no_targets(x: ArrayLike) -> ValueError:
    return ValueError(
        "Training needs targets: pass `y`, or a dataset of (x, y) pairs. "
        f"Received: x of type {type(x).__name__} without targets"
    )


def _unknown_size(received: str) -> ValueError:
    return ValueError(
        "The number of training rows N is not known, and without it the KL divergence "
        "has no weight 1/N. Pass `dataset_size=N` to `fit`, or `steps_per_epoch` if "
        "that many steps are one pass over the rows, or give every variational layer "
        f"its `kl_weight=1/N`. Received: x of type {received}"
    )
