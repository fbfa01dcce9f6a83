"""The first training rows, whose residuals say how large the noise is."""

import keras
import numpy as np
from keras import tree

from tfbbb.base.types import ArrayLike
from tfbbb.prediction.inputs import flat_inputs

# Their root mean square is known to 4 per cent.
_MOST_ROWS = 256


class FirstRows:
    """Keeps the inputs of the first rows that `fit` reads.

    Args:
        model: A functional model.
    """

    def __init__(self, model: keras.Model):
        self._model = model
        self._batches: list[list[np.ndarray]] = []
        self.number = 0

    def add(self, x: ArrayLike) -> None:
        """Keeps inputs while they are few; Keras reports those of another structure."""
        missing = _MOST_ROWS - self.number
        if missing <= 0:
            return
        try:
            leaves = [
                np.asarray(leaf)[:missing] for leaf in flat_inputs(self._model, x)
            ]
        except (TypeError, ValueError):
            self.number = _MOST_ROWS
            self._batches = []
            return
        self._batches.append(leaves)
        self.number += len(leaves[0])

    def inputs(self, number: int) -> ArrayLike:
        """Returns inputs of so many rows, as the model takes them; None without any."""
        if not self._batches:
            return None
        leaves = [
            np.concatenate(parts)[:number] for parts in zip(*self._batches, strict=True)
        ]
        return tree.pack_sequence_as(self._model.input, leaves)
