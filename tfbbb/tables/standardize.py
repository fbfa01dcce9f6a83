"""Numeric features in units of their standard deviation."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from tfbbb.base.types import Config, Tensor
from tfbbb.tables.row_encoder import RowEncoder


@keras.saving.register_keras_serializable(package="tfbbb")
class Standardize(RowEncoder):
    """Standardises numeric columns and marks missing values.

        z = (x - mean) / scale,   0 where x is missing (NaN) or its column constant

    followed by an indicator, 1 where missing and else 0, for each column that may have
    missing values. `keras.layers.Normalization` does not fit: it does not handle
    missing values, and its divisor is at least 1e-7 in any unit.

    Input shape:
        `[n, d]`, raw units. Of float64 numbers the mean is subtracted in double
        precision, so that 1e9 and 1e9 + 1 differ.

    Output shape:
        `[n, d + m]` for `m` columns that may have missing values.

    Example:
    >>> import numpy as np
    >>> age = {"mean": 40.0, "scale": 10.0, "missing": True, "constant": False}
    >>> layer = Standardize([age])
    >>> np.asarray(layer(np.array([[50.0], [np.nan]])))
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

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

    def get_config(self) -> Config:
        return {**super().get_config(), "columns": self.columns}
