"""The first training rows, whose residuals say how large the noise is."""

import warnings

import keras
import numpy as np
from keras import tree

from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.gathered import SparseRows
from tfbbb.prediction.inputs import flat_inputs

# Their root mean square is known to 4 per cent.
_MOST_ROWS = 256
# A trained network has at most 1: the mean of all targets has 1.
_MOST_ERROR = 2.0


class FirstRows:
    """Keeps the inputs of the first rows that `fit` reads for a functional model."""

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
                np.asarray(SparseRows.of(leaf)[:missing])
                for leaf in flat_inputs(self._model, x)
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


def warn_of_other_units(
    likelihood: Likelihood, targets: np.ndarray, residuals: np.ndarray
) -> None:
    """Warns if a network that was converted is far worse than the mean of its targets.

    Residuals are targets less predictions by member, [rows, members, ..., k]; NaN for
    what does not count.
    """
    spread = float(np.std(targets))
    error = float(np.sqrt(np.nanmean(np.square(residuals[:, 0]))))
    if error > _MOST_ERROR * spread > 0.0:
        warnings.warn(
            "The converted network predicts its first rows worse than their mean does: "
            f"the root mean square error is {error:.3g}, the standard deviation of the "
            f"targets {spread:.3g}. {type(likelihood).__name__} takes its outputs as "
            f"the {likelihood.location_name} in the units of the targets. Convert a "
            "network that gives that, train the twin from the start, or choose another "
            "likelihood.",
            stacklevel=6,
        )
