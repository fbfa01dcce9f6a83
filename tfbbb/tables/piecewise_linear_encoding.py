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

    Args:
        edges: The edges of each column, increasing; a column with fewer than two edges
            has no code.

    Input shape:
        `[n, d]`, raw units.

    Output shape:
        `[n, T_1 + ... + T_d]`.

    Raises:
        ValueError: The edges of a column do not increase.

    Example:
    >>> import numpy as np
    >>> layer = PiecewiseLinearEncoding([[0.0, 1.0, 10.0]])
    >>> np.asarray(layer(np.array([[0.5], [10.0], [np.nan]], dtype="float32")))
    array([[ 0. , -0.5],
           [ 0.5,  0.5],
           [ 0. ,  0. ]], dtype=float32)
    """

    def __init__(self, edges: Sequence[Sequence[float]], **kwargs: Any):
        # Raw units need single precision, also under a mixed-precision policy.
        super().__init__(autocast=False, **kwargs)
        self.edges = [[float(edge) for edge in column] for column in edges]
        single = [np.asarray(column, dtype=np.float32) for column in self.edges]
        for column, given in zip(single, self.edges, strict=True):
            if np.any(np.diff(column) <= 0):
                raise ValueError(
                    "The edges of a column must increase, in single precision too. "
                    f"Received: {given}"
                )
        counts = [max(0, len(column) - 1) for column in single]
        self._columns = np.repeat(np.arange(len(single)), counts)
        parts = [column for column in single if len(column) > 1]
        none = np.zeros(0, dtype=np.float32)
        self._lower = np.concatenate([none, *(part[:-1] for part in parts)])
        self._width = np.concatenate([none, *(np.diff(part) for part in parts)])

    def _encode(self, inputs: Tensor) -> Tensor:
        values = ops.take(inputs, self._columns, axis=-1)
        position = ops.clip((values - self._lower) / self._width, 0.0, 1.0) - 0.5
        position = ops.where(ops.isnan(values), 0.0, position)
        return ops.cast(position, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], len(self._columns))

    def get_config(self) -> Config:
        return {**super().get_config(), "edges": self.edges}
