"""Inputs of the rows that `fit` reads on which the model is tried before training."""

import dataclasses
import math

import keras
import numpy as np
from keras import tree

from tfbbb.base.types import ArrayLike
from tfbbb.layers.exposure import exposure_reader
from tfbbb.model.training_rows import TrainingRows
from tfbbb.prediction.gathered import SparseRows
from tfbbb.prediction.inputs import flat_inputs

# First rows to keep: their root mean square is known to 4 per cent.
_FIRST_ROWS = 256
# Most rows with values that are not finite. Faults of other rows show in the loss.
_MOST_TRIED = 256


class InputRows:
    """Keeps the first rows of a functional model, and rows with values not finite.

    A layer may replace NaN, as those of `tfbbb.tables.preprocessing` do with missing
    values, so the model itself decides what is wrong: `check` runs it on one row for
    each position that is NaN in some row, and on one for each that is infinite.
    """

    def __init__(self, model: keras.Model, copies: int = 1, keeps_first: bool = False):
        self._model = model
        self._copies = copies
        self._missing = _FIRST_ROWS if keeps_first else 0
        self._first: list[list[np.ndarray]] = []
        self._num_rows = 0
        # Which positions of a row have been seen, by input and kind of value.
        self._seen: dict[tuple[int, str], np.ndarray] = {}
        likelihood = getattr(model, "likelihood", None)
        takes_exposure = likelihood is not None and likelihood.exposure
        self._exposure = exposure_reader(model) if takes_exposure else None
        self._exposures: list[np.ndarray] = []
        # The rows to try, by their place among all.
        self._tried: dict[int, list[np.ndarray]] = {}

    def add(self, x: ArrayLike) -> None:
        """Looks for rows to keep; Keras reports inputs of another structure."""
        try:
            leaves = flat_inputs(self._model, x)
            if self._exposure is not None:
                self._exposures.append(self._exposure(leaves))
            if self._missing > 0:
                first = [
                    np.asarray(SparseRows.of(leaf)[: self._missing]) for leaf in leaves
                ]
                self._first.append(first)
                self._missing -= len(first[0])
            arrays = [np.asarray(leaf) for leaf in leaves]
        except (TypeError, ValueError):
            return
        lengths = {array.shape[:1] for array in arrays}
        if len(lengths) > 1 or () in lengths:
            return
        for place, array in enumerate(arrays):
            for row in self._rows_to_try(place, array):
                if len(self._tried) < _MOST_TRIED:
                    values = [other[row : row + 1].copy() for other in arrays]
                    self._tried.setdefault(self._num_rows + row, values)
        self._num_rows += len(arrays[0])

    def with_exposures(self, rows: TrainingRows) -> TrainingRows:
        """Returns rows that were read with the exposures in their inputs, if any."""
        if rows.targets is None or not self._exposures:
            return rows
        # Rows of arrays that are for validation come last.
        found = np.concatenate(self._exposures)[: len(rows.targets)]
        return dataclasses.replace(rows, exposures=found)

    def first(self, number: int) -> ArrayLike:
        """Returns the first inputs, as the model takes them; None without any."""
        if not self._first:
            return None
        parts = zip(*self._first, strict=True)
        leaves = [np.concatenate(part)[:number] for part in parts]
        return tree.pack_sequence_as(self._model.input, leaves)

    def check(self) -> None:
        """Raises ValueError if the model has no finite output for a row to try."""
        if not self._tried:
            return
        numbers = sorted(self._tried)
        leaves = [
            _as_keras_floats(np.concatenate(parts))
            for parts in zip(*(self._tried[number] for number in numbers), strict=True)
        ]
        inputs = tree.pack_sequence_as(self._model.input, leaves)
        # The seeds of the layers stay as they are.
        with keras.StatelessScope():
            outputs = np.asarray(self._model(inputs, training=False))
        finite = np.isfinite(outputs).reshape(self._copies, len(numbers), -1)
        if not finite.all():
            self._refuse(numbers[int(np.argmin(finite.all(axis=(0, 2))))])

    def _rows_to_try(self, place: int, array: np.ndarray) -> list[int]:
        """Returns the first row with each position that is newly not finite."""
        if array.dtype.kind != "f":
            return []
        flat = _as_keras_floats(array.reshape(len(array), math.prod(array.shape[1:])))
        if np.isfinite(flat).all():
            return []
        found: set[int] = set()
        for kind, wrong in (("nan", np.isnan(flat)), ("inf", np.isinf(flat))):
            seen = self._seen.setdefault((place, kind), np.zeros(flat.shape[1], bool))
            new = np.flatnonzero(wrong.any(axis=0) & ~seen)
            found.update(wrong[:, new].argmax(axis=0).tolist())
            seen[new] = True
        return sorted(found)

    def _refuse(self, row: int) -> None:
        for variable in self._model.variables:
            if variable.dtype.startswith(("float", "bfloat")) and not (
                # The weight of a divergence is NaN until `fit` sets it.
                variable.name == "kl_weight" or np.isfinite(variable.numpy()).all()
            ):
                raise ValueError(
                    "The weights of the model are not finite, since training diverged "
                    "before. Make a new model. "
                    f"Received: {variable.path} with values that are not finite"
                )
        for reference, values in zip(self._model.inputs, self._tried[row], strict=True):
            if values.dtype.kind != "f":
                continue
            finite = np.isfinite(_as_keras_floats(values[0]))
            if not finite.all():
                position = np.argwhere(~finite)[0].tolist()
                raise ValueError(
                    "The network has no finite output where an input is not finite or "
                    "too large for its floats. Drop such rows, fill in the values, or "
                    "begin the network with layers that do, such as those of "
                    "`tfbbb.tables.preprocessing`. "
                    f"Received: {values[0][tuple(position)]} in row {row} of the input "
                    f"'{reference.name}', at {position}"
                )


def _as_keras_floats(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "f":
        return values
    # A value that is too large for these floats is infinite to the model.
    with np.errstate(over="ignore"):
        return values.astype(keras.config.floatx(), copy=False)
