"""Encodes each row once where a batch holds it several times."""

from abc import abstractmethod
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.call_context import current_call
from tfbbb.base.types import Tensor


class RowEncoder(keras.layers.Layer):
    """A layer without weights that encodes the rows of a batch as features `[n, p]`.

    A `BayesianModel` repeats its batch for its members and draws: the copies of a row
    share its encoding.
    """

    def call(self, inputs):
        copies = current_call().copies_in_batch
        if copies == 1:
            return self._encode(inputs)
        rows = keras.tree.map_structure(lambda x: x[: tf.shape(x)[0] // copies], inputs)
        return tf.tile(self._encode(rows), [copies, 1])

    @abstractmethod
    def _encode(self, inputs: Any) -> Tensor:
        """Returns the features of rows, each on its own."""
