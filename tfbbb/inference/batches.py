"""The rows that an inference method reads, batch by batch, as often as it needs."""

import math
from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.types import ArrayLike, Structure
from tfbbb.model.input_rows import InputRows
from tfbbb.model.training_rows import training_rows
from tfbbb.prediction.output_mask import OutputMask


class Batches:
    """The rows of any data that `fit` takes, in batches; each pass reads them again.

    Raises ValueError for rows that do not fit each other or the model, and for data
    that can be read only once (a generator).
    """

    def __init__(
        self,
        x: Structure,
        y: ArrayLike = None,
        sample_weight: ArrayLike = None,
        batch_size: int = 256,
        model: keras.Model | None = None,
    ):
        if model is None:
            rows = training_rows(x, y, sample_weight=sample_weight)
        else:
            inputs = InputRows(model)
            rows = training_rows(
                x,
                y,
                sample_weight=sample_weight,
                num_places=len(model.outputs[0].shape) - 2,
                mask=OutputMask(model).of_arrays,
                observe=inputs.add,
            )
            inputs.check()
            rows = inputs.with_exposures(rows)
        if rows.targets is None:
            raise ValueError(
                "This method reads the rows more than once: pass arrays, a "
                "`tf.data.Dataset` or a `keras.utils.PyDataset`. "
                f"Received: x of type {type(x).__name__}"
            )
        self.rows = rows
        self.targets = rows.targets
        self.size = rows.size
        self._data = x
        self._arrays: tuple[Structure, ...] | None = None
        if y is not None:
            self._arrays = (tree.map_structure(np.asarray, x), np.asarray(y))
            if sample_weight is not None:
                self._arrays += (np.asarray(sample_weight),)
            _check_lengths(*self._arrays)
        self._batch_size = batch_size

    def __iter__(self) -> Iterator[tuple[Structure, tf.Tensor, tf.Tensor]]:
        """Yields (inputs, targets, weights) tensors of one batch after the other."""
        for batch in self._batches():
            inputs, targets, weights = keras.utils.unpack_x_y_sample_weight(
                tuple(batch) if isinstance(batch, list) else batch
            )
            inputs = tree.map_structure(tf.convert_to_tensor, inputs)
            targets = tf.convert_to_tensor(targets)
            if weights is None:
                weights = tf.ones(tf.shape(targets)[:1])
            yield inputs, targets, _of_rows(weights, len(targets))

    def together(self) -> tuple[Structure, tf.Tensor, tf.Tensor]:
        """Returns inputs, targets and weights of all rows."""
        inputs, targets, weights = zip(*self, strict=True)
        joined = tree.map_structure(lambda *parts: tf.concat(parts, axis=0), *inputs)
        return joined, tf.concat(targets, axis=0), tf.concat(weights, axis=0)

    def __len__(self) -> int:
        """Returns the number of batches."""
        if self._arrays is not None:
            return math.ceil(len(self.targets) / self._batch_size)
        data = self._data
        if isinstance(data, keras.utils.PyDataset):
            return data.num_batches
        return int(tf.data.experimental.cardinality(data))

    def _batches(self) -> Iterator[Structure]:
        data = self._data
        if self._arrays is not None:
            for first in range(0, len(self.targets), self._batch_size):
                rows = slice(first, first + self._batch_size)
                yield tree.map_structure(lambda a, rows=rows: a[rows], self._arrays)
        elif isinstance(data, keras.utils.PyDataset):
            yield from (data[index] for index in range(data.num_batches))
        else:
            yield from data


def _of_rows(weights: ArrayLike, num_rows: int) -> tf.Tensor:
    """Returns weights as [rows]."""
    if np.size(weights) != num_rows:
        raise ValueError(
            "This method takes one sample weight for each row; `fit` takes weights of "
            f"places too. Received: sample weights of shape {np.shape(weights)}"
        )
    return tf.reshape(tf.cast(weights, tf.float32), [-1])


def _check_lengths(x: Structure, *others: np.ndarray) -> None:
    inputs = [len(array) if array.ndim else 0 for array in tree.flatten(x)]
    if len({*inputs, *map(len, others)}) > 1:
        names = ("targets", "weights")
        received = [f"{len(a)} {name}" for name, a in zip(names, others, strict=False)]
        raise ValueError(
            "Inputs, targets and sample weights must have one entry for each row. "
            f"Received: inputs of {inputs} rows, {', '.join(received)}"
        )
