"""Sentences about rows that are unlike the training rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tfbbb.base.texts import shown_number
from tfbbb.base.types import Structure
from tfbbb.export.manifest import Feature, Manifest
from tfbbb.prediction.compiled import in_parts
from tfbbb.tables.row_warnings import show_date
from tfbbb.tables.values import MISSING_DATE

# Of 100 rows like the training rows, one is described.
_SHARE = 0.01
_ROWS_AT_A_TIME = 64
_MOST_GAPS = 3


def is_unlike(familiarity: np.ndarray, num_rows: int) -> np.ndarray:
    """Returns which rows are as unfamiliar as 1 of 100 rows like the training rows.

    No familiarity beside m training rows is below 1 / (m + 1).
    """
    return familiarity <= max(_SHARE, 1.001 / (num_rows + 1))


def describe_unlike_rows(
    inputs: Sequence[np.ndarray],
    unlike: np.ndarray,
    manifest: Manifest,
    differences: Callable[[Structure], Structure],
) -> list[list[str]]:
    """Returns sentences about unlike rows; other rows have none.

    They name values in gaps between training values, and pairs of values that training
    rows do not have together. Values beyond the training values, and unseen categories,
    have warnings of their own. `differences` is `Familiarity.differences` of some rows.
    """
    sentences: list[list[str]] = [[] for _ in unlike]
    places = np.flatnonzero(unlike)
    given = [np.asarray(tensor)[places] for tensor in inputs]
    found: Any = in_parts(differences, given, _ROWS_AT_A_TIME)
    arrays = {name: np.asarray(value) for name, value in found.items()}
    columns = _compared_columns(given, manifest)
    for number, row in enumerate(places):
        values = [(feature, column[number]) for feature, column in columns]
        of_row = {name: array[number] for name, array in arrays.items()}
        sentences[row] = _describe(values, of_row)
    return sentences


def _compared_columns(
    inputs: Sequence[np.ndarray], manifest: Manifest
) -> list[tuple[Feature, np.ndarray]]:
    """Returns the compared features and their values."""
    assert manifest.familiarity is not None
    names = manifest.familiarity.columns
    columns: Sequence[np.ndarray] = inputs
    if manifest.inputs == "matrix":
        columns = list(inputs[0].reshape(len(inputs[0]), -1).T)
    pairs = list(zip(manifest.features, columns, strict=True))
    if names is None:
        return pairs
    named = {feature.name: (feature, column) for feature, column in pairs}
    return [named[name] for name in names]


def _describe(
    values: Sequence[tuple[Feature, Any]], found: Mapping[str, np.ndarray]
) -> list[str]:
    """Returns the sentences about one row."""
    sentences, apart = [], np.flatnonzero(found["is_apart"])
    for place in apart[:_MOST_GAPS]:
        feature, value = values[place]
        low, high = found["below"][place], found["above"][place]
        sentences += _describe_number(feature, value, low, high)
    if len(apart):
        return sentences
    first, second = found["pair"]
    if first == second >= 0:
        return _describe_category(*values[first])
    if first >= 0:
        return [_describe_pair(values[first], values[second])]
    farthest, nearest = int(found["farthest"]), ""
    feature, value = values[farthest][0], found["nearest"][farthest]
    if feature.kind != "categorical" and np.isfinite(value):
        nearest = f", where it has {_show(feature, value)}"
    return [
        "Few or no training rows are near these values together; the nearest one "
        f"differs most in column {feature.name!r}{nearest}."
    ]


def _describe_pair(one: tuple[Feature, Any], other: tuple[Feature, Any]) -> str:
    names = " and ".join(repr(feature.name) for feature, _ in (one, other))
    texts = " and ".join(_show(*given) for given in (one, other))
    are_texts = {one[0].kind, other[0].kind} == {"categorical"}
    near = "these values" if are_texts else "values near these"
    return f"Columns {names} are {texts}; few or no training rows have {near} together."


def _describe_category(feature: Feature, value: Any) -> list[str]:
    """Returns a sentence about a new category, unless another warning says it."""
    shown = _show(feature, value)
    if feature.categories is not None or shown == "missing":
        return []
    return [f"Column {feature.name!r} is {shown}; few or no training rows have it."]


def _describe_number(
    feature: Feature, value: Any, low: float, high: float
) -> list[str]:
    """Returns a sentence about a value between training values, or beyond them."""
    is_said = feature.low is not None
    if np.isfinite([low, high]).all():
        where = f"few or no training rows lie between {_show(feature, low)} and "
        where += _show(feature, high)
    elif np.isfinite(low) and not is_said:
        where = f"training rows reach {_show(feature, low)}"
    elif np.isfinite(high) and not is_said:
        where = f"training rows begin at {_show(feature, high)}"
    else:
        return []
    return [f"Column {feature.name!r} is {_show(feature, value)}; {where}."]


def _show(feature: Feature, value: Any) -> str:
    if feature.kind == "categorical":
        text = value.decode() if isinstance(value, bytes) else str(value)
        return repr(text) if text else "missing"
    number = float(value)
    if np.isnan(number) or value == MISSING_DATE:
        return "missing"
    return show_date(number) if feature.kind == "date" else shown_number(number, 6)
