"""The rows that `fit` trains on: their number and their targets."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.types import ArrayLike


@dataclasses.dataclass(frozen=True)
class TrainingRows:
    """The training rows of one `fit`.

    Attributes:
        targets: Targets of the training rows, or None if reading would consume them.
        size: Number of rows, or the sum of their weights if they have weights.
        member_sizes: Number of rows, or their total weight, that each member trains
            on, [members]; None if all members train on all rows.
        member_temperatures: The temperature of each member relative to the schedule,
            [members]; None for 1.
        mean_weights: The mean weight of a row for each member, [members], or [1] for
            all members. Each step divides by it, and not by the weights of its own
            batch, so that the gradient is unbiased however much weights differ. None
            to divide by the weights of the batch.
    """

    targets: np.ndarray | None
    size: float
    member_sizes: np.ndarray | None = None
    member_temperatures: np.ndarray | None = None
    mean_weights: np.ndarray | None = None

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
    class_weight: Mapping[int, float] | None = None,
    validation_split: float = 0.0,
    dataset_size: float | None = None,
    observe: Callable[[Any], object] = lambda inputs: None,
) -> TrainingRows:
    """Counts the rows that `fit(x, y, ...)` trains on, exactly.

    `validation_split` removes rows from the end of arrays. A `tf.data.Dataset` of
    known, finite length and a `keras.utils.PyDataset` are read once. `observe` is
    called with the inputs of each batch, or with `x` if it is an array. Anything else
    needs `dataset_size`.

    Raises:
        ValueError: The number of rows is not known or not positive, a weight is not
            finite, or inputs are lists of numbers instead of arrays.
    """
    if y is not None:
        _check_arrays(x)
    if dataset_size is not None and not (
        math.isfinite(dataset_size) and dataset_size > 0
    ):
        raise ValueError(
            "`dataset_size` must be the positive number of training rows. "
            f"Received: dataset_size={dataset_size}"
        )
    if y is not None:
        batches: Iterable[Any] = [(x, *_arrays(y, sample_weight, validation_split))]
    elif isinstance(x, tf.data.Dataset):
        batches = _dataset_batches(x, dataset_size)
    elif isinstance(x, keras.utils.PyDataset) and x.num_batches is not None:
        batches = (x[index] for index in range(x.num_batches))
    elif x is None or hasattr(x, "__array__") or isinstance(x, list | tuple | dict):
        raise _no_targets(x)
    elif dataset_size is not None:
        return TrainingRows(targets=None, size=dataset_size)
    else:
        raise _unknown_size(type(x).__name__)

    targets: list[np.ndarray] = []
    size = 0.0
    for batch in batches:
        inputs, batch_targets, weights = keras.utils.unpack_x_y_sample_weight(
            tuple(batch) if isinstance(batch, list) else batch
        )
        if batch_targets is None:
            raise _no_targets(x)
        observe(inputs)
        check_weights(weights, first_row=sum(map(len, targets)))
        targets.append(np.asarray(batch_targets))
        size += _total_weight(targets[-1], weights, class_weight)
        if dataset_size is not None and sum(map(len, targets)) >= dataset_size:
            break
    total = dataset_size if dataset_size is not None else size
    if not (any(map(len, targets)) and total > 0):
        raise ValueError(
            "There is nothing to train on: there are no training rows, or their "
            f"weights add up to 0. Received: total={total}"
        )
    return TrainingRows(targets=np.concatenate(targets), size=total)


def check_weights(weights: ArrayLike, first_row: int = 0) -> None:
    """Raises ValueError for a sample weight that is not finite, by its row."""
    if weights is None:
        return
    weights = np.asarray(weights, float)
    if weights.ndim > 1 and weights[0].size > 1:
        raise ValueError(
            "Every row has one sample weight: pass an array of shape [rows]. "
            f"Received: sample weights of shape {weights.shape}"
        )
    finite = np.isfinite(weights).reshape(len(weights), -1).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(
            "Every sample weight must be a finite number; give rows that should not "
            f"count the weight 0. Received: {weights[row]} in row {first_row + row}"
        )


def _check_arrays(x: Any) -> None:
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
) -> tuple[Any, ...]:
    targets = np.asarray(y)
    # As Keras splits: the last rows are for validation, before any shuffling.
    kept = math.floor(len(targets) * (1.0 - validation_split))
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight)[:kept]
    return targets[:kept], sample_weight


def _dataset_batches(
    dataset: tf.data.Dataset, dataset_size: float | None
) -> Iterator[Any]:
    known = int(dataset.cardinality()) >= 0
    if not known and dataset_size is None:
        raise _unknown_size("tf.data.Dataset of unknown or infinite length")
    return dataset.as_numpy_iterator()


def _total_weight(
    targets: np.ndarray, weights: ArrayLike, class_weight: Mapping[int, float] | None
) -> float:
    total = np.ones(len(targets)) if weights is None else np.asarray(weights, float)
    if class_weight is not None:
        classes = targets.reshape(len(targets), -1)
        labels = classes.argmax(-1) if classes.shape[1] > 1 else classes[:, 0]
        total = total * [class_weight.get(int(label), 1.0) for label in labels]
    return float(np.sum(total))


def _no_targets(x: ArrayLike) -> ValueError:
    return ValueError(
        "Training needs targets: pass `y`, or a dataset of (x, y) pairs. "
        f"Received: x of type {type(x).__name__} without targets"
    )


def _unknown_size(received: str) -> ValueError:
    return ValueError(
        "The number of training rows N is not known, and without it the KL divergence "
        "has no weight 1/N. Pass `dataset_size=N` to `fit`, or give every variational "
        f"layer its `kl_weight=1/N`. Received: x of type {received}"
    )
