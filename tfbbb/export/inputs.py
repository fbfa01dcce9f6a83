"""Converts the inputs of users to the tensors of an exported model's signatures."""

import difflib
import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tfbbb.abbreviation import abbreviate
from tfbbb.export.manifest import Feature, InputError, Manifest
from tfbbb.types import ArrayLike

_NUMERIC = "biuf"
# The most unknown names that are searched for a misspelt one, at 10 us each.
_MOST_COMPARED = 1000

Inputs = npt.ArrayLike | Mapping[str, npt.ArrayLike]


def to_tensors(inputs: Inputs, manifest: Manifest) -> dict[str, np.ndarray]:
    """Arranges `inputs` as the tensors of the model's signatures.

    Args:
        inputs: Array of shape `[n, d]`, columns in the order of the manifest's
            features, or a mapping from column names to arrays of shape `[n]`, or a
            data frame. Columns that the model does not read are ignored. A
            missing value is NaN, `None`, `pandas.NA` or the empty string, in columns
            that may miss one.
        manifest: The manifest, with the features of the model.

    Returns:
        One array per tensor, float32 or string, by tensor name.

    Raises:
        InputError: If there is no row; a column is lacking or shorter than
            another; or a value is not a finite number, not text, or missing
            where its column needs one.
    """
    features = manifest.features
    inputs = _by_name(inputs)
    if isinstance(inputs, Mapping):
        check_names(inputs, features)
        columns = [_column(inputs[feature.name], feature) for feature in features]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1 or 0 in lengths:
            raise InputError(
                "Every column needs the same number of rows, and at least one. "
                f"Received: {sorted(lengths)} rows"
            )
        if manifest.inputs == "matrix":
            return {"inputs": np.stack(columns, axis=1)}
        return {f.tensor: column for f, column in zip(features, columns, strict=True)}
    if manifest.inputs == "matrix":
        return {"inputs": _matrix(inputs, features)}
    rows = np.asarray(inputs, dtype=object)
    check_shape(rows.shape, features)
    return {f.tensor: _column(rows[:, i], f) for i, f in enumerate(features)}


def _by_name(inputs: Inputs) -> Inputs:
    """Returns a data frame with named columns as a mapping, other inputs unchanged."""
    names = getattr(inputs, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return inputs
    frame: Any = inputs
    return {name: frame[name] for name in names}


def check_names(names: Iterable[str], features: Sequence[Feature]) -> None:
    """Raises an `InputError` unless every feature is among `names`."""
    expected, received = {feature.name for feature in features}, set(names)
    for feature in features:
        if feature.name not in received:
            raise InputError(
                f"The column {feature.name!r} is lacking"
                f"{_misspelt(feature.name, received - expected)}; the model reads "
                f"{listed(features)}."
            )


def _misspelt(name: str, unknown: Iterable[str]) -> str:
    """Returns a hint at the name that is probably a misspelt `name`, or nothing."""
    some = itertools.islice(unknown, _MOST_COMPARED)
    plain = {str(other).strip().lower(): other for other in some}
    near = difflib.get_close_matches(name.strip().lower(), plain, n=1)
    return f" (is {plain[near[0]]!r} misspelt?)" if near else ""


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


def number(value: Any, row: int, feature: Feature) -> float:
    """Returns one value of a numeric column; NaN if it is missing and may be.

    Raises:
        InputError: If it is not a number, or missing and may not be.
    """
    if _is_missing(value):
        if not feature.missing:
            raise _missing(row, feature)
        return math.nan
    if not isinstance(value, Real | np.bool_):
        not_text = ", not text" if isinstance(value, str) else ""
        raise InputError(
            f"Row {row}, column {feature.name!r} needs a number or a boolean (true, "
            f"false){not_text}. Received: {abbreviate(value)}"
        )
    try:
        return float(value)
    except OverflowError:
        # Only an integer has no float.
        sign = 1 if cast(int, value) > 0 else -1
        raise _not_finite(sign * math.inf, row, feature) from None


def text(value: Any, row: int, feature: Feature) -> str:
    """Returns one value of a categorical column; empty if it is missing and may be.

    Raises:
        InputError: If it is not text, or missing and may not be.
    """
    if _is_missing(value) or (isinstance(value, str) and not value):
        if not feature.missing:
            raise _missing(row, feature)
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"Row {row}, column {feature.name!r} needs text. "
            f"Received: {abbreviate(value)}"
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"Row {row}, column {feature.name!r} needs text that UTF-8 can hold. "
            f"Received: {abbreviate(value)}"
        ) from None
    return value


def _is_missing(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    # Pandas may not be installed; a value that is its NA shows that it is imported.
    return value is None or value is getattr(sys.modules.get("pandas"), "NA", None)


def _matrix(values: npt.ArrayLike, features: Sequence[Feature]) -> np.ndarray:
    array = _array(values)
    check_shape(array.shape, features)
    if array.dtype.kind not in _NUMERIC:
        array = np.stack([_column(array[:, i], f) for i, f in enumerate(features)], 1)
    single = _single(array)
    finite = np.isfinite(single)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise _not_finite(array[row, column], row + 1, features[column])
    return single


def _column(values: ArrayLike, feature: Feature) -> np.ndarray:
    """Validates one column, `[n]`; returns it as float32 or as strings."""
    if not hasattr(values, "__len__") or isinstance(values, str | Mapping):
        raise InputError(
            f"The column {feature.name!r} needs a list of values, one per row. "
            f"Received: {abbreviate(values)}"
        )
    if feature.kind == "categorical":
        texts = [text(value, row, feature) for row, value in enumerate(values, 1)]
        return np.array(texts, dtype=object)
    array = _array(values)
    if array.dtype.kind not in _NUMERIC or array.ndim != 1:
        array = np.array(
            [number(value, row, feature) for row, value in enumerate(values, 1)]
        )
    single = _single(array)
    wrong = np.isinf(single) if feature.missing else ~np.isfinite(single)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise _not_finite(array[row], row + 1, feature)
    return single


def _array(values: npt.ArrayLike) -> np.ndarray:
    """Returns an array that keeps text and numbers apart."""
    try:
        array = np.asarray(values)
    except ValueError:
        return np.asarray(values, dtype=object)
    return array if array.dtype.kind in _NUMERIC else np.asarray(values, dtype=object)


def _single(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(np.float32, copy=False)


def _missing(row: int, feature: Feature) -> InputError:
    return InputError(
        f"Row {row}, column {feature.name!r} has no value, but the model was trained "
        "without missing values in it."
    )


def _not_finite(value: Any, row: int, feature: Feature) -> InputError:
    if _is_missing(value):
        return _missing(row, feature)
    return InputError(
        f"Row {row}, column {feature.name!r} needs a number that is finite in single "
        f"precision, up to 3.4e38. Received: {value!s:.100}"
    )


def any_row(manifest: Manifest) -> dict[str, list[float] | list[str]]:
    """Makes one row that a model takes, to find out whether it answers."""
    return {
        feature.name: [0.0] if feature.kind == "numeric" else ["?"]
        for feature in manifest.features
    }
