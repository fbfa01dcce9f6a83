"""Checks that a network has finite outputs for inputs that are not finite."""

import math

import keras
import numpy as np
from keras import tree

from tfbbb.base.types import ArrayLike
from tfbbb.prediction.inputs import flat_inputs

# Values that are checked together.
_VALUES_AT_ONCE = 1 << 20
# Rows that the model runs on together.
_ROWS_AT_ONCE = 256
# Values of all rows to try: 64 MB in single precision. Faults of other rows show in the
# loss.
_MOST_VALUES = 1 << 24


class FiniteInputs:
    """Checks that a functional model has finite outputs for its inputs.

    A layer may replace NaN, as those of `tfbbb.tables.preprocessing` do with missing
    values, so the model itself decides what is wrong: it runs on one row for each
    position that is NaN in some row, and on one for each that is infinite.
    """

    def __init__(self, model: keras.Model, copies: int = 1):
        self._model = model
        self._copies = copies
        self._num_rows = 0
        # Which positions of a row have been seen, by input and kind of value.
        self._seen: dict[tuple[int, str], np.ndarray] = {}
        # The rows to try, by their place among all.
        self._rows: dict[int, list[np.ndarray]] = {}

    def add(self, x: ArrayLike) -> None:
        """Looks for rows to try."""
        try:
            leaves = flat_inputs(self._model, x)
            arrays = [np.asarray(leaf) for leaf in leaves]
        except (TypeError, ValueError):
            return
        lengths = {array.shape[:1] for array in arrays}
        if len(lengths) > 1 or () in lengths:
            return
        for place, array in enumerate(arrays):
            if array.dtype.kind != "f":
                continue
            for row in self._rows_to_try(place, array):
                values = [other[row : row + 1].copy() for other in arrays]
                if len(self._rows) * sum(x.size for x in values) < _MOST_VALUES:
                    self._rows.setdefault(self._num_rows + row, values)
        self._num_rows += len(arrays[0])

    def check(self) -> None:
        """Runs the model on the rows to try."""
        numbers = sorted(self._rows)
        for first in range(0, len(numbers), _ROWS_AT_ONCE):
            tried = numbers[first : first + _ROWS_AT_ONCE]
            leaves = [
                _as_keras_floats(np.concatenate(parts))
                for parts in zip(*(self._rows[number] for number in tried), strict=True)
            ]
            inputs = tree.pack_sequence_as(self._model.input, leaves)
            # The seeds of the layers stay as they are.
            with keras.StatelessScope():
                outputs = np.asarray(self._model(inputs, training=False))
            finite = np.isfinite(outputs).reshape(self._copies, len(tried), -1)
            if not finite.all():
                self._refuse(tried[int(np.argmin(finite.all(axis=(0, 2))))])

    def _rows_to_try(self, place: int, array: np.ndarray) -> list[int]:
        """Returns the first row with each position that is newly not finite."""
        found: set[int] = set()
        flat = array.reshape(len(array), math.prod(array.shape[1:]))
        step = max(1, _VALUES_AT_ONCE // max(1, flat.shape[1]))
        for first in range(0, len(flat), step):
            values = _as_keras_floats(flat[first : first + step])
            if np.isfinite(values).all():
                continue
            for kind, wrong in (("nan", np.isnan), ("inf", np.isinf)):
                is_wrong = wrong(values)
                seen = self._seen.setdefault(
                    (place, kind), np.zeros(flat.shape[1], dtype=bool)
                )
                new = np.flatnonzero(is_wrong.any(axis=0) & ~seen)
                found.update((first + is_wrong[:, new].argmax(axis=0)).tolist())
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
        for reference, values in zip(self._model.inputs, self._rows[row], strict=True):
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
