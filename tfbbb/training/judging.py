"""Judges a trained model beside baselines that were fitted to the same rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from tfbbb.base.texts import shown_number
from tfbbb.base.types import Config
from tfbbb.judging.evaluation.baselines import MOST_ROWS, Baselines, one_by_one
from tfbbb.judging.evaluation.gradient_boosting import (
    GRADIENT_BOOSTING,
    NOT_JUDGED_BY_TREES,
    TREES_ARE_BETTER,
    TooSlowError,
    fit_gradient_boosting,
    score_gradient_boosting,
)
from tfbbb.judging.evaluation.input_encoding import named_columns
from tfbbb.judging.evaluation.judgement import MODEL, PARENT, is_worse, judge
from tfbbb.judging.evaluation.predicted_rows import PredictedRows, joined
from tfbbb.judging.types import Inputs
from tfbbb.judging.verdict import FEWEST_ROWS_TO_JUDGE
from tfbbb.tables import Schema
from tfbbb.tables.memory_rows import MemoryRows

# Of a sample of the training rows, in numbers.
_MOST_NUMBERS = 4_000_000
# Of held-out rows, each of which is scored by the spread of the others.
_FOLDS = 4

# The last part of a training, whose loss is compared with that of the part before.
_PART = 0.1
_FEWEST_LOSSES, _FEWEST_TO_COMPARE = 3, 3
# Of the drop of the whole training. The decay of the learning rate and cold posteriors,
# which fit their rows ever better, let the loss of a settled training fall a little.
_LEAST_SHARE = 0.05
# In nats per row. Smaller differences change no decision.
_LEAST_DROP = 0.02
# Of the step of the targets, whose rounding has the variance 1/12, and of their spread.
_NEAR_ROUNDING, _TINY_NOISE = 1.5 / np.sqrt(12.0), 1e-3

# Inputs, targets and weights, None for 1.
Rows = tuple[Inputs, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class TrainingBaselines:
    """The baselines of a training, beside which its model is judged.

    `predicted` is what baselines that did not see them make of the measured rows, and
    `of_all` are those of all training rows.
    """

    schema: Schema
    targets: np.ndarray
    weights: np.ndarray | None
    of_all: Baselines
    predicted: dict[str, PredictedRows]
    was_too_slow: bool

    @classmethod
    def fit(
        cls,
        schema: Schema,
        rows: MemoryRows,
        folds: np.ndarray | None,
        inputs: Inputs,
        targets: np.ndarray,
        *,
        discrete: bool,
        masses: tuple[float, ...] = (),
        weights: np.ndarray | None = None,
        training_weights: np.ndarray | None = None,
        seconds: float = inf,
    ) -> "TrainingBaselines":
        """Fits baselines to the other folds of each row, or to a sample of the rows.

        Gradient boosting is fitted to the same rows, unless they are few or the time in
        seconds is short.
        """
        options: dict[str, Any] = {
            "names": [column.name for column in schema.features],
            "num_classes": len(schema.classes),
            "discrete": discrete,
            "exposure": schema.exposure,
            "event": schema.event is not None,
            "masses": masses,
        }
        if folds is None:
            fitted = _sample(rows, training_weights, len(schema.features))
            of_all = _fit(fitted, num_rows=rows.num_rows, **options)
            places = np.arange(len(targets))
            parts = [_Part(of_all, fitted, (inputs, targets, weights), places)]
            folds_of_rows = places % _FOLDS
        else:
            every = (inputs, targets, weights)
            of_all = _fit(every, **options)
            folds_of_rows = folds[0]
            parts = _cross_fitted(every, folds_of_rows, options)
        found = [part.baselines.predict(*part.measured[:2]) for part in parts]
        places_of = [part.places for part in parts]
        predicted = {
            model.name: joined([each[model.name] for each in found], places_of)
            for model in of_all.models
        }
        outputs, was_too_slow = None, False
        try:
            if schema.event is None:
                outputs = _boosted(
                    parts, len(targets), len(schema.classes), seconds, of_all.unit
                )
        except TooSlowError:
            was_too_slow = True
        if outputs is not None:
            of_targets = [
                score_gradient_boosting(
                    of_target,
                    y,
                    folds_of_rows,
                    weights=weights,
                    num_classes=len(schema.classes),
                    discrete=discrete,
                    relative=of_all.relative_exposures(inputs),
                    masses=masses,
                )
                for of_target, y in zip(
                    outputs, one_by_one(targets, len(outputs)), strict=True
                )
            ]
            predicted[GRADIENT_BOOSTING] = PredictedRows.together(of_targets)
        return cls(schema, targets, weights, of_all, predicted, was_too_slow)

    @property
    def linear(self) -> PredictedRows:
        """What a linear or logistic model predicts; a constant without features."""
        return self.predicted[self.of_all.models[-1].name]

    def judge(
        self,
        model: PredictedRows,
        *,
        places: np.ndarray | None = None,
        parent: PredictedRows | None = None,
    ) -> Config:
        """Compares a model with the baselines on the rows that its metrics are of."""
        others = dict(self.predicted)
        if parent is not None:
            others[PARENT] = parent
        predicted = {MODEL: model, **others}
        judgement = judge(
            predicted,
            self.targets,
            places,
            self.weights,
            self.schema.classes,
            self.schema.target_names,
        )
        said = []
        beside_trees = judgement["comparisons"].get(GRADIENT_BOOSTING)
        if beside_trees is not None and is_worse(beside_trees):
            said.append(TREES_ARE_BETTER)
        judgement["sentences"] += said
        judgement["warnings"] += said
        if self.was_too_slow:
            judgement["sentences"].append(NOT_JUDGED_BY_TREES)
        return judgement


class _Part(NamedTuple):
    """Measured rows, their places among all, and baselines that did not see them."""

    baselines: Baselines
    fitted: Rows
    measured: Rows
    places: np.ndarray


def _fit(rows: Rows, **options: Any) -> Baselines:
    inputs, targets, weights = rows
    return Baselines.fit(inputs, targets, weights=weights, **options)


def _cross_fitted(
    every: Rows, folds: np.ndarray, options: dict[str, Any]
) -> list[_Part]:
    """Fits the baselines of each fold to the other folds."""
    inputs, targets, weights = every
    columns = named_columns(inputs, options["names"])

    def rows(places: np.ndarray) -> Rows:
        inputs = {name: values[places] for name, values in columns.items()}
        of_rows = None if weights is None else weights[places]
        return inputs, targets[places], of_rows

    parts = []
    for fold in range(folds.max() + 1):
        places, fitted = np.flatnonzero(folds == fold), rows(folds != fold)
        baselines = _fit(fitted, **options)
        parts.append(_Part(baselines, fitted, rows(places), places))
    return parts


def _boosted(
    parts: Sequence[_Part],
    num_rows: int,
    num_classes: int,
    seconds: float,
    unit: float,
) -> list[np.ndarray] | None:
    """Returns the outputs of gradient boosting for all measured rows, by target."""
    encodings = [part.baselines.encoding for part in parts]
    if num_rows < FEWEST_ROWS_TO_JUDGE or not all(each.width for each in encodings):
        return None
    found = []
    for encoding, part in zip(encodings, parts, strict=True):
        inputs, targets, weights = part.fitted
        relative = part.baselines.relative_exposures(inputs)
        if relative is not None:
            targets = targets / relative[:, np.newaxis]
            weights = relative if weights is None else weights * relative
        features, measured = map(encoding.transform, (inputs, part.measured[0]))
        columns = one_by_one(targets, 1 if num_classes else targets.shape[1])
        outputs = [
            fit_gradient_boosting(
                features,
                y,
                measured,
                weights=weights,
                num_classes=num_classes,
                fits=len(parts) * len(columns),
                seconds=seconds,
            )
            for y in columns
        ]
        # Rates per the unit of all.
        found.append([each * (unit / part.baselines.unit) for each in outputs])
    back = np.argsort(np.concatenate([part.places for part in parts]))
    return [np.concatenate(of_parts)[back] for of_parts in zip(*found, strict=True)]


def _sample(rows: MemoryRows, weights: np.ndarray | None, num_features: int) -> Rows:
    """Returns some training rows, drawn at random."""
    size = min(MOST_ROWS, max(1, _MOST_NUMBERS // (num_features + 1)))
    places = np.sort(np.random.default_rng(0).permutation(rows.num_rows)[:size])
    found: Any = rows.at(places)
    return *found, None if weights is None else weights[places]


def describe_convergence(
    losses: Sequence[float],
    aleatoric: np.ndarray | None,
    targets: np.ndarray,
    resolution: float | None,
) -> Config:
    """Describes whether the loss still falls, or noise is missing."""
    said, drop = [], _drop(losses)
    falls = drop > _LEAST_DROP and drop > _LEAST_SHARE * (losses[0] - min(losses))
    if falls:
        said.append("The loss was still falling at the end: train more epochs.")
    noise = None
    if aleatoric is not None:
        noises, spreads = np.sqrt(np.median(aleatoric, axis=0)), np.std(targets, axis=0)
        # Few rows left out may have equal targets.
        sizes = np.maximum(spreads[: len(noises)], np.finfo(np.float64).tiny)
        place = int(np.argmin(noises / sizes))
        noise, spread = float(noises[place]), float(spreads[place])
        if resolution is not None and noise <= _NEAR_ROUNDING * resolution:
            said.append(
                "The noise is at its floor, the rounding of the targets to steps of "
                f"{shown_number(resolution, 6)}: a column may give the target away."
            )
        elif resolution is None and noise <= _TINY_NOISE * spread:
            said.append(
                f"There is almost no noise ({shown_number(noise, 2)}, where the "
                f"targets have a standard deviation of {shown_number(spread, 2)}): a "
                "column may give the target away."
            )
    return {"loss_drop": drop, "loss_falls": falls, "noise": noise, "warnings": said}


def _drop(losses: Sequence[float]) -> float:
    """Returns the drop of the loss at the end; 0 of too few losses."""
    if len(losses) < _FEWEST_LOSSES:
        return 0.0
    size = max(round(_PART * len(losses)), min(_FEWEST_TO_COMPARE, len(losses) // 2))
    last = np.asarray(losses, np.float64)[-2 * size :]
    return float(last[:size].mean() - last[size:].mean())
