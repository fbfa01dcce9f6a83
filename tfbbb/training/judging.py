"""Judges a trained model beside baselines that were fitted to the same rows."""

from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

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
        """Fits baselines to the other folds of each row, or to a sample of the rows."""
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
        else:
            every = (inputs, targets, weights)
            of_all = _fit(every, **options)
            parts = _cross_fitted(every, folds[0], options)
        found = [part.baselines.predict(*part.measured[:2]) for part in parts]
        was_too_slow = False
        has_features = all(part.baselines.encoding.width for part in parts)
        enough = len(targets) >= FEWEST_ROWS_TO_JUDGE
        if schema.event is None and has_features and enough:
            try:
                for part, of_part in zip(parts, found, strict=True):
                    of_part[GRADIENT_BOOSTING] = _boosted(
                        part, len(schema.classes), len(parts), seconds
                    )
            except TooSlowError:
                was_too_slow = True
        places_of = [part.places for part in parts]
        predicted = {
            name: joined([each[name] for each in found], places_of)
            for name in found[-1]
        }
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
    part: _Part, num_classes: int, num_parts: int, seconds: float
) -> PredictedRows:
    """Scores what gradient boosting makes of the measured rows of a part."""
    inputs, targets, weights = part.fitted
    measured, truth, weights_of_measured = part.measured
    relative = part.baselines.relative_exposures(inputs)
    if relative is not None:
        targets = targets / relative[:, np.newaxis]
        weights = relative if weights is None else weights * relative
    encode = part.baselines.encoding.transform
    features, features_of_measured = encode(inputs), encode(measured)
    number = 1 if num_classes else targets.shape[1]
    constant, scored = part.baselines.models[0], []
    for y, true in zip(
        one_by_one(targets, number), one_by_one(truth, number), strict=True
    ):
        outputs = fit_gradient_boosting(
            features,
            y,
            features_of_measured,
            weights=weights,
            num_classes=num_classes,
            fits=num_parts * number,
            seconds=seconds,
        )
        scored.append(
            score_gradient_boosting(
                outputs,
                true,
                weights=weights_of_measured,
                num_classes=num_classes,
                discrete=constant.discrete,
                relative=part.baselines.relative_exposures(measured),
                masses=constant.masses,
            )
        )
    return PredictedRows.together(scored)


def _sample(rows: MemoryRows, weights: np.ndarray | None, num_features: int) -> Rows:
    """Returns some training rows, drawn at random."""
    size = min(MOST_ROWS, max(1, _MOST_NUMBERS // (num_features + 1)))
    places = np.sort(np.random.default_rng(0).permutation(rows.num_rows)[:size])
    found: Any = rows.at(places)
    return *found, None if weights is None else weights[places]
