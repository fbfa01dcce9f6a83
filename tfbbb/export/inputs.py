"""Converts inputs and targets of users to the tensors of an exported model."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfbbb.base.numbers import in_dtype
from tfbbb.base.suggestions import near_name
from tfbbb.base.texts import abbreviate
from tfbbb.base.texts import listed as list_texts
from tfbbb.base.types import ArrayLike
from tfbbb.export.manifest import Feature, InputError, Manifest
from tfbbb.tables.column import Column
from tfbbb.tables.column_names import compose_letters
from tfbbb.tables.notations.date import DateNotation
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.words import TextNotation
from tfbbb.tables.row_warnings import Faults, ReadColumns
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import MISSING_DATE

_NUMERIC = "biuf"
# The most missing columns that a message names, and those with a suggestion.
_MOST_MISSING, _MOST_SUGGESTED = 20, 3

_EXPOSURE = "a positive number: it is the exposure, which the mean is proportional to"
# Seconds since 1970 beyond which a date is a mistake.
_FAR = 2**53

Inputs = npt.ArrayLike | Mapping[str, npt.ArrayLike]


class Tensors(dict[str, np.ndarray]):
    """Valid arrays by the names of a model's tensors: the result of `to_tensors`."""

    # The columns of a table that they were read from.
    columns: ReadColumns | None = None
    # The passes, the draws and the distribution of the last question about them.
    distribution: tuple[tuple[Any, int, int], Any] | None = None

    def take(self, rows: slice) -> "Tensors":
        """Returns some of the rows."""
        return Tensors({name: tensor[rows] for name, tensor in self.items()})


def to_tensors(inputs: Inputs, manifest: Manifest) -> Tensors:
    """Arranges `inputs` as the tensors of the model's signatures, [n] or [n, d].

    They are an array [n, d], columns in the order of the manifest's features, or of the
    shape of the model's only input, a mapping from column names to arrays [n], or a
    data frame. Columns that the model does not read are ignored. A missing value is
    NaN, `None`, `pandas.NA` or the empty string, in columns that may miss one. Texts
    are read in the notation of the column; numbers of a column of dates are seconds
    since 1970. `Tensors` are returned as they are.
    """
    if isinstance(inputs, Tensors):
        return inputs
    if not isinstance(inputs, ReadColumns):
        return _arrange(inputs, manifest)
    for feature in manifest.features:
        if feature.name in inputs.unreadable and not feature.may_miss:
            row, fault = inputs.unreadable[feature.name][0]
            raise InputError(f"Row {row + 1}: {fault}.", feature.name)
    tensors = _arrange(inputs, manifest)
    tensors.columns = inputs
    return tensors


def _arrange(inputs: Inputs, manifest: Manifest) -> Tensors:
    features = manifest.features
    names = getattr(inputs, "columns", None)
    if names is not None and all(isinstance(name, str) for name in names):
        frame: Any = inputs
        inputs = {name: frame[name] for name in names}
    if isinstance(inputs, Mapping):
        check_names(inputs, features)
        columns = [_column(inputs[feature.name], feature) for feature in features]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1 or 0 in lengths:
            raise InputError(
                "Every column needs the same number of rows, and at least one. "
                f"Received: {sorted(lengths)} rows"
            )
    elif manifest.inputs == "matrix" and features[0].kind == "numeric":
        return Tensors(inputs=_matrix(inputs, manifest))
    else:
        rows = np.asarray(inputs, dtype=object)
        check_shape(rows.shape, features)
        columns = [_column(rows[:, i], f) for i, f in enumerate(features)]
    if manifest.inputs == "matrix":
        return Tensors(inputs=np.stack(columns, axis=1))
    return Tensors({f.tensor: x for f, x in zip(features, columns, strict=True)})


def find_faults(tensors: Mapping[str, np.ndarray], manifest: Manifest) -> Faults:
    """Finds values of rows that the training rows did not have."""
    features, columns = manifest.features, getattr(tensors, "columns", None)
    if manifest.inputs == "matrix":
        matrix = tensors["inputs"]
        # Most rows are as in training, which one comparison of the matrix finds.
        if features[0].kind == "numeric" and manifest.row_warnings.covers(matrix):
            return Faults(len(matrix), {})
        named = zip(features, matrix.T, strict=True)
    else:
        named = zip(features, [tensors[f.tensor] for f in features], strict=True)
    values = {feature.name: column for feature, column in named}
    unreadable = None if columns is None else columns.unreadable
    return manifest.row_warnings.find(values, unreadable)


def check_names(names: Iterable[str], features: Sequence[Feature]) -> None:
    """Raises an `InputError` unless every feature is among `names`."""
    expected, received = {feature.name for feature in features}, set(names)
    missing = [feature.name for feature in features if feature.name not in received]
    if not missing:
        return

    shown = [repr(name) for name in missing[:_MOST_MISSING]]
    for place, name in enumerate(missing[:_MOST_SUGGESTED]):
        if near := near_name(name, received - expected, cutoff=0.6):
            shown[place] += f" (is {near!r} misspelt?)"
    if len(missing) > _MOST_MISSING:
        shown.append(f"{len(missing) - _MOST_MISSING} more")
    what = "column" if len(missing) == 1 else "columns"
    verb = "is" if len(missing) == 1 else "are"
    raise InputError(
        f"The {what} {list_texts(shown)} {verb} lacking; the model reads "
        f"{listed(features)}.",
        missing[0],
    )


def check_shape(shape: tuple[int, ...], features: Sequence[Feature]) -> None:
    """Raises an `InputError` unless `shape` is `(n, d)` with n > 0."""
    if len(shape) != 2 or not shape[0] or shape[1] != len(features):
        raise InputError(
            f"The model reads rows of {len(features)} values: {listed(features)}. "
            f"Received: shape={shape}"
        )


def listed(features: Sequence[Feature], most: int = 20) -> str:
    """Returns the names of the features for a message."""
    names = ", ".join(repr(feature.name) for feature in features[:most])
    return (
        names if len(features) <= most else f"{names} and {len(features) - most} more"
    )


def number(value: object, row: int, feature: Feature) -> float:
    """Returns one value of a numeric column; NaN if it is missing and may be."""
    if _is_missing(value):
        if not feature.may_miss:
            raise _missing(row, feature)
        return math.nan
    if not isinstance(value, Real | np.bool_):
        not_text = ", not text" if isinstance(value, str) else ""
        needs = f"a number or a boolean (true, false){not_text}"
        raise _wrong(value, row, feature, needs)
    try:
        return float(value)
    except OverflowError:
        # Only an integer has no float.
        sign = 1 if cast(int, value) > 0 else -1
        raise _not_a_number(sign * math.inf, row, feature) from None


def text(value: object, row: int, feature: Feature) -> str:
    """Returns one value of a categorical column; empty if it is missing and may be."""
    if _is_missing(value) or value == "":
        if not feature.may_miss:
            raise _missing(row, feature)
        return ""
    if not isinstance(value, str):
        raise _wrong(value, row, feature, "text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _wrong(value, row, feature, "text that UTF-8 can hold") from None
    return compose_letters(value)


def _texts(values: Iterable[Any], feature: Feature) -> list[str]:
    """Returns the values of a categorical column: see `text`."""
    given = list(values)
    try:
        # Texts that UTF-8 can hold, of which none is missing.
        joined = "".join(given)
        joined.encode()
        if joined.isascii() and all(given):
            return given
    except (TypeError, UnicodeEncodeError):
        pass
    return [text(value, row, feature) for row, value in enumerate(given, 1)]


def _is_missing(value: object) -> bool:
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    # Pandas may not be installed; a value that is its NA shows that it is imported.
    return value is None or value is getattr(sys.modules.get("pandas"), "NA", None)


def in_row_shape(matrix: np.ndarray, manifest: Manifest) -> np.ndarray:
    """Returns the tensor of all features, [n, d], in the shape of the model's input."""
    shape = manifest.row_shape
    return matrix if shape is None else matrix.reshape(len(matrix), *shape)


def _matrix(values: npt.ArrayLike, manifest: Manifest) -> np.ndarray:
    features, shape = manifest.features, manifest.row_shape
    array = _array(values)
    # Without its last axis if that has the size 1.
    shorter = shape[:-1] if shape is not None and shape[-1] == 1 else shape
    if shape is not None and array.shape[1:] in (shape, shorter):
        array = array.reshape(len(array), len(features))
    check_shape(array.shape, features)
    if array.dtype.kind not in _NUMERIC:
        array = np.stack([_column(array[:, i], f) for i, f in enumerate(features)], 1)
    numbers, wrong = _converted(array, features[0])
    if wrong.any():
        wrong &= ~(np.isnan(numbers) & [feature.may_miss for feature in features])
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise _not_a_number(array[row, column], row + 1, features[column])
    return numbers


def _column(values: ArrayLike, feature: Feature) -> np.ndarray:
    """Validates one column, `[n]`; returns numbers in its dtype, or texts."""
    if not hasattr(values, "__len__") or isinstance(values, str | Mapping):
        raise InputError(
            f"The column {feature.name!r} needs a list of values, one per row. "
            f"Received: {abbreviate(values)}",
            feature.name,
        )
    if not isinstance(values, Sequence | np.ndarray):
        # A column of a frame counts its rows by its index.
        values = np.asarray(values)
    if isinstance(values, np.ndarray) and values.shape[1:] == (1,):
        values = values[:, 0]
    if feature.kind == "categorical":
        notation = feature.column.notation if feature.notation is not None else None
        if isinstance(notation, TextNotation) and notation.numbers:
            values = _with_digits(values)
        texts = _texts(values, feature)
        if notation is not None:
            return _read(feature.column, texts, list(range(len(texts))), feature)
        return np.array(texts, dtype=object)
    if feature.kind == "date":
        return _dates(values, feature)
    array = _array(values)
    if feature.notation is not None and array.dtype.kind not in _NUMERIC:
        array = _numbers(array, feature)
    if array.dtype.kind not in _NUMERIC or array.ndim != 1:
        array = np.array(
            [number(value, row, feature) for row, value in enumerate(values, 1)]
        )
    notation = feature.column.notation if feature.notation is not None else None
    if isinstance(notation, NumberNotation):
        array = notation.without_missing_values(array)
    numbers, wrong = _converted(array, feature)
    if feature.may_miss:
        wrong &= ~np.isnan(numbers)
    if feature.role == "exposure":
        wrong |= ~(numbers > 0.0)
    if wrong.any():
        row = int(np.argmax(wrong))
        if feature.role == "exposure":
            raise _wrong(array[row], row + 1, feature, _EXPOSURE)
        raise _not_a_number(array[row], row + 1, feature)
    return numbers


def _with_digits(values: Iterable[object]) -> list[object]:
    """Returns values with numbers written as text, as a table's column is."""
    return [
        _digits(value)
        if isinstance(value, Real | np.bool_) and not _is_missing(value)
        else value
        for value in values
    ]


def _digits(value: Any) -> str:
    whole = not isinstance(value, bool | np.bool_) and value % 1 == 0
    exact = int(value) if whole and abs(value) < 2**53 else value
    return pa.scalar(exact).cast(pa.string()).as_py()


def _numbers(values: Any, feature: Feature) -> np.ndarray:
    """Returns the numbers of a column, of which some may be written as text."""
    numbers = np.empty(len(values))
    others: list[int] = []
    for place, value in enumerate(values):
        if isinstance(value, Real | np.bool_) or _is_missing(value):
            numbers[place] = number(value, place + 1, feature)
        else:
            others.append(place)
    given = [values[place] for place in others]
    numbers[others] = _read(feature.column, given, others, feature)
    return numbers


def _dates(values: Any, feature: Feature) -> np.ndarray:
    """Returns the dates of a column in seconds since 1970, int64."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        dates = values.astype("datetime64[s]").astype(np.int64)
    else:
        dates, others = np.full(len(values), MISSING_DATE), list[int]()
        for place, value in enumerate(values):
            if isinstance(value, Real | np.bool_):
                if not (_is_missing(value) or value == MISSING_DATE):
                    dates[place] = _whole_seconds(value, place + 1, feature)
            elif not _is_missing(value):
                others.append(place)
        dates = _with_digits_as_seconds(dates, feature)
        given = [values[place] for place in others]
        dates[others] = _read(feature.column, given, others, feature)
    missing = dates == MISSING_DATE
    if missing.any() and not feature.may_miss:
        raise _missing(int(np.argmax(missing)) + 1, feature)
    return dates


def _with_digits_as_seconds(dates: np.ndarray, feature: Feature) -> np.ndarray:
    """Returns dates such as 20220331, if the column has such, in seconds since 1970.

    Days in seconds end in two zeros, which no date in digits does with the year first.
    """
    notation = feature.column.notation
    if not isinstance(notation, DateNotation) or not notation.has_digits:
        return dates
    seconds = notation.seconds(dates.astype(np.float64))
    known = ~np.isnan(seconds)
    return np.where(known, np.where(known, seconds, 0.0).astype(np.int64), dates)


def _whole_seconds(value: Any, row: int, feature: Feature) -> int:
    if not (math.isfinite(value) and abs(value) < _FAR):
        raise _wrong(value, row, feature, "a date, or seconds since 1970")
    return math.floor(value)


def _read(
    column: Column, values: Sequence[object], places: list[int], feature: Feature
) -> np.ndarray:
    """Reads some values of a column as a table's cells are read."""
    if not values:
        return np.zeros(0)

    def read(some: Sequence[object]) -> np.ndarray:
        given = pa.table({column.name: pa.array(some, from_pandas=True)})
        column.check(given)
        return column.values(given)

    faults = (pa.ArrowException, TableError, TypeError, UnicodeError)
    try:
        return read(values)
    except faults:
        pass
    for place, value in zip(places, values, strict=True):
        try:
            read([value])
        except faults:
            needs, notation = f"a {column.meaning}", column.notation
            if notation is not None and (described := notation.describe()):
                needs += f" ({described})"
            raise _wrong(value, place + 1, feature, needs) from None
    raise InputError(
        f"The column {feature.name!r} has values of several types; give all of them "
        f"as text. Received: {abbreviate(values)}",
        feature.name,
    )


def _array(values: npt.ArrayLike) -> np.ndarray:
    """Returns an array that keeps text and numbers apart."""
    try:
        array = np.asarray(values)
    except ValueError:
        return np.asarray(values, dtype=object)
    return array if array.dtype.kind in _NUMERIC else np.asarray(values, dtype=object)


def _converted(array: np.ndarray, feature: Feature) -> tuple[np.ndarray, np.ndarray]:
    """Returns numbers in the dtype of their tensor, and which of them are wrong."""
    numbers, wrong = in_dtype(array, feature.dtype or "float32")
    return numbers, ~np.isfinite(numbers) if wrong is None else wrong


def _wrong(value: object, row: int, feature: Feature, needs: str) -> InputError:
    if isinstance(value, np.generic):
        value = value.item()
    return InputError(
        f"Row {row}, column {feature.name!r} needs {needs}. "
        f"Received: {abbreviate(value)}",
        feature.name,
    )


def _missing(row: int, feature: Feature) -> InputError:
    return InputError(
        f"Row {row}, column {feature.name!r} has no value, but the model was trained "
        "without missing values in it.",
        feature.name,
    )


def _not_a_number(value: Any, row: int, feature: Feature) -> InputError:
    if _is_missing(value):
        return _missing(row, feature)
    needs = "a number that is finite in single precision, up to 3.4e38"
    if feature.dtype is not None:
        needs = f"a finite number of the type {feature.dtype}, as the model's input"
    return _wrong(value, row, feature, needs)


def any_row(manifest: Manifest) -> dict[str, list[float] | list[str]]:
    """Makes one row that a model takes, to find out whether it answers."""
    return {
        feature.name: ([1.0] if feature.role else [0.0])
        if feature.kind == "numeric"
        else ["?"]
        for feature in manifest.features
    }


def class_name(value: str | float) -> str:
    """Returns the name of the class that a value of a table stands for."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return f"{value:.15g}"
