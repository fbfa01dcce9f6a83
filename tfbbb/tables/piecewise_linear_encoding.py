"""Numbers as their position in each interval between quantiles."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from tfbbb.base.types import Config, Tensor
from tfbbb.tables.row_encoder import RowEncoder


@keras.saving.register_keras_serializable(package="tfbbb")
class PiecewiseLinearEncoding(RowEncoder):
    """Encodes each number as its position in each of several intervals.

    For a column with the edges `b_0 < b_1 < ... < b_T`, the number x becomes

        e_t = clip((x - b_(t-1)) / (b_t - b_(t-1)), 0, 1) - 1/2,   t = 1, ..., T

    and a missing number becomes T zeros (Gorishniy, Rubachev and Babenko 2022, section
    3.2, with quantiles as edges). A linear function of the code is a continuous,
    piecewise linear function of x, constant beyond the edges. So the first layer of a
    network fits a curve of each column, and an outlier moves no code out of its range.

    Input shape:
        `[n, d]`, raw units, in single or double precision.

    Output shape:
        `[n, T_1 + ... + T_d]`.

    Example:
    >>> import numpy as np
    >>> layer = PiecewiseLinearEncoding([[0.0, 1.0, 10.0]])
    >>> np.asarray(layer(np.array([[0.5], [10.0], [np.nan]], dtype="float32")))
    array([[ 0. , -0.5],
           [ 0.5,  0.5],
           [ 0. ,  0. ]], dtype=float32)
    """

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

    def get_config(self) -> Config:
        return {**super().get_config(), "edges": self.edges}
