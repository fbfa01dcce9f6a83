"""Numbers as features: standardised, and as positions between quantiles."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfbbb.base.call_context import current_call
from tfbbb.base.types import Config, Tensor


class RowEncoder(keras.layers.Layer):
    """A layer without weights that encodes the rows of a batch as features `[n, p]`.

    A `BayesianModel` repeats its batch for its members and draws: the copies of a row
    share its encoding. `settings` are the names of its arguments.
    """

    settings: ClassVar[tuple[str, ...]]

    def call(self, inputs):
        copies = current_call().copies_in_batch
        if copies == 1:
            return self._encode(inputs)
        rows = keras.tree.map_structure(lambda x: x[: tf.shape(x)[0] // copies], inputs)
        return tf.tile(self._encode(rows), [copies, 1])

    @abstractmethod
    def _encode(self, inputs: Any) -> Tensor:
        """Returns the features of rows, each on its own."""

    def get_config(self) -> Config:
        settings = {name: getattr(self, name) for name in self.settings}
        return {**super().get_config(), **settings}


@keras.saving.register_keras_serializable(package="tfbbb")
class Standardize(RowEncoder):
    """Standardises numeric columns and marks missing values.

        z = (x - mean) / scale,   0 where x is missing (NaN) or its column constant

    followed by an indicator, 1 where missing and else 0, for each column that may have
    missing values. `keras.layers.Normalization` does not fit: it does not handle
    missing values, and its divisor is at least 1e-7 in any unit.
    Of float64 numbers the mean is subtracted in double precision, so that 1e9 and
    1e9 + 1 differ.
    """

    settings = ("columns",)

    def __init__(self, columns: Sequence[Config], **kwargs: Any):
        # Raw units keep their precision, also under a mixed-precision policy.
        super().__init__(autocast=False, **kwargs)
        self.columns = [dict(column) for column in columns]
        constant = np.array([column["constant"] for column in self.columns])
        scale = np.array([column["scale"] for column in self.columns])
        self._mean = np.array([c["mean"] for c in self.columns], dtype=np.float64)
        self._scale = np.where(constant, np.inf, scale).astype(np.float32)
        self._missing = [i for i, c in enumerate(self.columns) if c["missing"]]
        if not np.all(self._scale > 0):
            raise ValueError(
                "Every `scale` must be positive in single precision. "
                f"Received: scale={scale.tolist()}"
            )

    def _encode(self, inputs: Tensor) -> Tensor:
        missing = ops.isnan(inputs)
        double = keras.backend.standardize_dtype(inputs.dtype) == "float64"
        mean = self._mean if double else self._mean.astype(np.float32)
        centered = ops.cast(inputs - mean, "float32")
        outputs = ops.where(missing, 0.0, centered / self._scale)
        if self._missing:
            indicators = ops.take(missing, self._missing, axis=-1)
            indicators = ops.cast(indicators, outputs.dtype)
            outputs = ops.concatenate([outputs, indicators], axis=-1)
        return ops.cast(outputs, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], input_shape[-1] + len(self._missing))


@keras.saving.register_keras_serializable(package="tfbbb")
class PiecewiseLinearEncoding(RowEncoder):
    """Encodes each number as its position in each of several intervals.

    For a column with the edges `b_0 < b_1 < ... < b_T`, the number x becomes

        e_t = clip((x - b_(t-1)) / (b_t - b_(t-1)), 0, 1) - 1/2,   t = 1, ..., T

    and a missing number becomes T zeros (Gorishniy, Rubachev and Babenko 2022, section
    3.2, with quantiles as edges). A linear function of the code is a continuous,
    piecewise linear function of x, constant beyond the edges. So the first layer of a
    network fits a curve of each column, and an outlier moves no code out of its range.
    """

    settings = ("edges",)

    def __init__(self, edges: Sequence[Sequence[float]], **kwargs: Any):
        # Raw units keep their precision, also under a mixed-precision policy.
        super().__init__(autocast=False, **kwargs)
        self.edges = [[float(edge) for edge in column] for column in edges]
        counts = [max(0, len(column) - 1) for column in self.edges]
        self._columns = np.repeat(np.arange(len(self.edges)), counts)
        parts = [np.array(column) for column in self.edges if len(column) > 1]
        none = np.zeros(0)
        self._lower = np.concatenate([none, *(part[:-1] for part in parts)])
        self._width = np.concatenate([none, *(np.diff(part) for part in parts)])
        if np.any(self._width <= 0):
            raise ValueError(
                f"The edges of a column must increase. Received: edges={self.edges}"
            )

    def _encode(self, inputs: Tensor) -> Tensor:
        double = keras.backend.standardize_dtype(inputs.dtype) == "float64"
        lower = self._lower if double else self._lower.astype(np.float32)
        values = ops.take(inputs, self._columns, axis=-1)
        distance = ops.cast(values - lower, "float32")
        width = self._width.astype(np.float32)
        position = ops.clip(distance / width, 0.0, 1.0) - 0.5
        position = ops.where(ops.isnan(values), 0.0, position)
        return ops.cast(position, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], len(self._columns))
