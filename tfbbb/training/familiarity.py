"""The familiarity of rows, and what widens unfamiliar ones, of a table's model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from keras import tree

from tfbbb.judging.types import Inputs
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.extrapolation import Extrapolation
from tfbbb.prediction.familiarity import (
    LEAST_ROWS,
    MOST_COLUMNS,
    MOST_REPRESENTATIVES,
    Familiarity,
)
from tfbbb.tables import Schema
from tfbbb.tables.memory_rows import MemoryRows
from tfbbb.tables.values import MISSING_DATE

# Of which the network predicts the locations, each with another cell missing.
_MOST_ROWS_CHANGED, _ROWS_OF_A_COLUMN, _DRAWS = 20_000, 200, 16
# 90 % of normal numbers are within so many deviations.
_REACH = 1.645


def fit_familiarity(
    rows: MemoryRows, schema: Schema, seed: int = 0
) -> Familiarity | None:
    """Fits the familiarity of rows to training rows; None if it cannot be fitted.

    It needs 20 rows and at most 1250 columns. Columns of hashed texts are not compared:
    most of their values occur once.
    """
    compared = [column for column in schema.predictors if not column.buckets]
    if rows.num_rows < LEAST_ROWS or not 0 < len(compared) <= MOST_COLUMNS:
        return None
    places = _some_places(rows.num_rows, seed)
    inputs, _ = rows.at(places)
    if isinstance(inputs, Mapping):
        inputs = {column.name: inputs[column.name] for column in compared}
    return Familiarity.fit(inputs, seed=seed)


def fit_extrapolation(
    familiarity: Familiarity, model: BayesianModel, rows: MemoryRows, seed: int = 0
) -> Extrapolation | None:
    """Fits what widens predictions beyond the training rows; None if nothing does."""
    inputs, given = rows.at(_some_places(rows.num_rows, seed))
    targets = np.asarray(given)
    exposures = rows.exposures(inputs)
    changes = changes_by_missing(model, familiarity, inputs, targets, exposures, seed)
    return Extrapolation.fit(
        familiarity,
        model.likelihood,
        targets,
        exposures=exposures,
        changes=changes,
        seed=seed,
    )


def changes_by_missing(
    model: BayesianModel,
    familiarity: Familiarity,
    inputs: Any,
    targets: np.ndarray,
    exposures: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray | None:
    """Returns how missing cells change the locations of rows: see `Extrapolation`.

    They are as small as intervals allow that cover 90 % of the targets of such rows.
    """
    places, likelihood = familiarity.places, model.likelihood
    assert places is not None
    first = None if exposures is None else exposures[:1]
    if likelihood.locations(targets[:1], first) is None:
        return None
    width = len(familiarity.encoding.is_text)
    number = int(np.clip(_MOST_ROWS_CHANGED // width, LEAST_ROWS, _ROWS_OF_A_COLUMN))
    some = places[np.linspace(0, len(places) - 1, min(number, len(places)), dtype=int)]
    given, of_some = _take(inputs, some), None
    if exposures is not None:
        of_some = exposures[some]
    known = likelihood.locations(targets[some], of_some)
    assert known is not None
    num_missing = np.asarray(familiarity.rows)[:, width:].sum(axis=0)

    columns: Sequence[str | int] = familiarity.columns or range(width)
    blank = [_without(given, name) for name in columns]
    (whole, _), *found = _predict(model, [given, *blank], of_some, seed)
    changes = []
    for (locations, deviations), lacking in zip(found, num_missing, strict=True):
        change = locations - whole
        # Rows that lack the value do not change.
        changed = max(int((change != 0.0).any(axis=1).sum()), 1)
        variance = np.square(change).sum(axis=0) / changed
        least = 0.0 if lacking >= LEAST_ROWS else 0.8
        factor = _widening(np.abs(known - locations), deviations, variance, least)
        changes.append(change * np.sqrt(factor / changed))
    return np.stack(changes, axis=1)


def _predict(
    model: BayesianModel,
    parts: Sequence[Inputs],
    exposures: np.ndarray | None,
    seed: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns locations and deviations of parts of rows, by the same draws, [n, k].

    A deviation is that of normal targets with the same upper quantile of 95 %.
    """
    ends = np.cumsum([len(tree.flatten(part)[0]) for part in parts])[:-1]
    rows = tree.map_structure(lambda *columns: np.concatenate(columns), *parts)
    found = model.predictive(rows, _DRAWS, method="weight", seed=seed)
    if exposures is not None:
        exposures = np.tile(exposures, len(parts))
    upper = model.likelihood.locations(found.quantile(0.95), exposures)
    assert upper is not None
    locations = found.of_outputs(
        lambda outputs: np.asarray(outputs)[..., : upper.shape[1]].mean(axis=1)
    )
    deviations = (upper - locations) / _REACH
    return list(zip(np.split(locations, ends), np.split(deviations, ends), strict=True))


def _widening(
    errors: np.ndarray, deviations: np.ndarray, variance: np.ndarray, least: float
) -> float:
    """Returns the part of a further variance with which intervals cover 90 %."""
    # They have trained the model: one standard error more.
    share = min(0.9 + 0.3 / np.sqrt(len(errors)), 1.0)
    for factor in np.linspace(least, 1.0, 11):
        reach = _REACH * np.sqrt(np.square(deviations) + factor * variance)
        if (errors <= reach).mean() >= share:
            break
    return float(factor)


def _take(inputs: Inputs, places: np.ndarray) -> Inputs:
    if isinstance(inputs, Mapping):
        return {name: values[places] for name, values in inputs.items()}
    return inputs[places]


def _without(inputs: Inputs, column: str | int) -> Inputs:
    """Returns rows without any value of a column."""
    if isinstance(column, int):
        changed = np.array(inputs)
        changed[:, column] = np.nan
        return changed
    assert isinstance(inputs, Mapping)
    values = inputs[column]
    blank: object = "" if values.dtype == object else np.nan
    if values.dtype.kind == "i":
        blank = MISSING_DATE
    return {**inputs, column: np.full_like(values, blank)}


def describe_extrapolation(extrapolation: Extrapolation | None) -> list[str]:
    """Returns what the blocks said, as a sentence, if predictions are widened."""
    if extrapolation is None or extrapolation.trial is None:
        return []
    trial = extrapolation.trial
    without, covered = (
        f"{100.0 * trial[name]:.0f} %"
        for name in ("coverage_90_without", "coverage_90")
    )
    if without == covered:
        return [
            "Beyond the training rows, 90 % intervals hardly widen: in "
            f"{trial['blocks']} blocks of rows that were left out, they would cover "
            f"{covered} of the targets that a random forest predicts, widened or not."
        ]
    return [
        f"Beyond the training rows, 90 % intervals are wider: in {trial['blocks']} "
        "blocks of rows that were left out, intervals as wide as elsewhere would cover "
        f"{without} of the targets that a random forest predicts, and wider ones "
        f"{covered}."
    ]


def _some_places(num_rows: int, seed: int) -> np.ndarray:
    """Returns the indices of the rows to choose representatives from, in order."""
    if num_rows <= MOST_REPRESENTATIVES:
        return np.arange(num_rows)
    generator = np.random.default_rng(seed)
    return np.sort(generator.choice(num_rows, MOST_REPRESENTATIVES, replace=False))
