"""The report of a version: what its training measured, for people."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from tfbbb.judging.evaluation.baselines import Baselines
from tfbbb.judging.explain import (
    effect,
    permutation_importance,
    variance_split,
)
from tfbbb.judging.explain.rows import (
    Rows,
    predicted,
    sampled,
)
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction import Predictive
from tfbbb.prediction.recalibration.cross_fitted import CrossFitted
from tfbbb.scores import metrics
from tfbbb.scores.plots.sampling_band import sampling_band
from tfbbb.tables import Schema
from tfbbb.training.held_out import LEVELS
from tfbbb.training.recalibration import Calibrated

_FORMAT = 1
_MOST_ROWS = 500
_MOST_PROBABILITIES = 20_000
_CALIBRATION_ROWS = 2000
_CALIBRATION_LEVELS = tuple(float(level) for level in np.arange(1, 20) / 20)
_BINS = 10
_CONFIDENCE = 0.95
# Rows times columns behind the importance, and the fewest rows of a wide table.
_ROWS_TIMES_COLUMNS, _FEWEST_ROWS = 8000, 100
_MOST_EFFECTS, _POINTS, _ROWS_OF_EFFECT = 12, 15, 50
_DRAWS = 20
_DIGITS = 7

Prediction = Predictive | CrossFitted


@dataclass(frozen=True)
class VersionReport:
    """What a training measured.

    Calibration and held-out rows come from the prediction that gave the metrics, by
    members and a recalibration that did not see the rows. The explanations come from
    the trained model, and from fewer rows and draws than those of
    `tfbbb.explain.explain`. They are computed by `to_dict`, because only versions that
    are exported need them.

    Attributes:
        model: The trained model.
        columns: Names of the columns, in the order in which to explain them.
        figures: The parts that need no further prediction, as plain JSON values.
        rows: At most 500 of the rows that the metrics are of.
        targets: Their targets [n, 1], or class indices [n].
        places: The index of each of these rows in its table, [n].
        num_rows: Number of rows that the metrics are of.
        seconds: The processor time for the explanations, which other processes do not
            shorten. Columns for which it is too short have none.
    """

    model: BayesianModel
    columns: Sequence[str]
    figures: dict[str, Any]
    rows: Rows
    targets: np.ndarray
    places: np.ndarray
    num_rows: int
    seconds: float

    @classmethod
    def measure(
        cls,
        model: BayesianModel,
        schema: Schema,
        baselines: Baselines,
        calibrated: Calibrated,
        recipe: Mapping[str, Any],
        judgement: Mapping[str, Any],
        inputs: Any,
        targets: np.ndarray,
        places: np.ndarray,
        seconds: float,
    ) -> "VersionReport":
        """Measures a trained model on the rows that its metrics are of.

        Args:
            model: The trained model.
            schema: The schema of the table.
            baselines: The baselines of the training rows.
            calibrated: The metrics, and the prediction of the n rows that gave them.
            recipe: What was chosen and why.
            judgement: The figures beside those of the baselines.
            inputs: Inputs of these rows.
            targets: Their targets [n, 1], or class indices [n].
            places: The index of each row in its table, [n].
            seconds: The processor time for the explanations.
        """
        prediction = calibrated.prediction
        classes = list(schema.classes)
        generator = np.random.default_rng(0)
        figures = {
            "task": schema.task,
            "target": schema.target.name,
            "classes": classes,
            "metrics": dict(calibrated.metrics),
            "metrics_from": recipe["metrics_from"],
            "judgement": dict(judgement),
            "calibration": _calibration(prediction, targets, generator),
            "held_out": _held_out(prediction, targets, places, classes, generator),
            "tried": {
                "chosen": recipe["chosen"],
                "networks": recipe["tried"],
                "likelihoods": recipe["likelihoods"],
                "recalibration": dict(calibrated.choice),
            },
        }
        chosen = sampled(len(targets), _MOST_ROWS, generator)
        names = [column.name for column in schema.features]
        return cls(
            model,
            _by_linear_model(names, baselines),
            figures,
            Rows.read(inputs, names).take(chosen),
            targets[chosen],
            places[chosen],
            len(targets),
            seconds,
        )

    def to_dict(self, clock: Callable[[], float] = time.process_time) -> dict[str, Any]:
        """Explains the model, and returns the report.

        Args:
            clock: The processor time in seconds.

        Returns:
            Plain JSON values: `docs/service.md` shows them.
        """
        report = {"format": _FORMAT, **self.figures, **self._explanations(clock)}
        found: dict[str, Any] = _rounded(report)
        return found

    def to_json(self) -> bytes:
        """Explains the model, and returns the report as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False).encode()

    def _explanations(self, clock: Callable[[], float]) -> dict[str, Any]:
        """Returns `variance_split`, `importance` and `effects`."""
        end_of_importance = clock() + 0.5 * self.seconds
        end = end_of_importance + 0.5 * self.seconds
        model, rows = self.model, self.rows
        names = list(rows.columns)
        split = variance_split(predicted(model, rows, None, None))
        parts: dict[str, Any] = {
            "variance_split": {"rows": self.num_rows, **split.to_dict(self.places)},
            "importance": None,
            "effects": [],
        }
        if clock() >= end_of_importance:
            return parts
        importance = permutation_importance(
            model,
            rows.inputs,
            self.targets,
            names=names,
            repeats=1,
            max_rows=max(_FEWEST_ROWS, _ROWS_TIMES_COLUMNS // len(names)),
            num_samples=_DRAWS,
            track=lambda _: takewhile(
                lambda _: clock() < end_of_importance, self.columns
            ),
        )
        measured = [found.name for found in importance]
        parts["importance"] = {
            "rows": self.num_rows,
            "columns": [asdict(found) for found in importance],
            "left_out": [name for name in names if name not in set(measured)],
        }
        parts["effects"] = [
            effect(
                model,
                rows.inputs,
                name,
                names=names,
                points=_POINTS,
                max_rows=_ROWS_OF_EFFECT,
                num_samples=_DRAWS,
            ).to_dict()
            for name in takewhile(lambda _: clock() < end, measured[:_MOST_EFFECTS])
            if rows.has_values(name)
        ]
        return parts


def _calibration(
    prediction: Prediction, targets: np.ndarray, generator: np.random.Generator
) -> dict[str, Any]:
    """Returns the coverage of intervals by level, or of classes reliability bins."""
    rows = sampled(len(targets), _CALIBRATION_ROWS, generator)
    if len(rows) < len(targets):
        prediction, targets = prediction.take(rows), targets[rows]
    scored: Any = prediction
    if hasattr(prediction, "probabilities"):
        diagram = metrics.reliability_diagram(scored, targets, bins=_BINS)
        expected = np.minimum(diagram.confidence, 1.0)
        return {
            "rows": len(rows),
            "edges": diagram.edges.tolist(),
            "counts": diagram.counts.tolist(),
            "confidence": diagram.confidence.tolist(),
            "accuracy": diagram.accuracy.tolist(),
            **_band(diagram.counts, expected),
        }
    if prediction.central_intervals:
        # Without a search for quantiles.
        coverage = metrics.calibration_curve(
            scored, targets, _CALIBRATION_LEVELS, central=True
        ).observed
    else:
        lower, upper = prediction.interval(_CALIBRATION_LEVELS)
        between = targets[:, np.newaxis]
        coverage = np.mean((lower <= between) & (between <= upper), axis=(0, 2))
    return {
        "rows": len(rows),
        "levels": list(_CALIBRATION_LEVELS),
        "coverage": coverage.tolist(),
        **_band(np.full(len(coverage), len(rows)), np.array(_CALIBRATION_LEVELS)),
    }


def _band(counts: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """Returns the shares of a calibrated model, up to chance; NaN of no row."""
    ends = [np.full(len(counts), np.nan) for _ in range(2)]
    filled = counts > 0
    found = sampling_band(counts[filled], expected[filled], _CONFIDENCE)
    for values, end in zip(ends, found, strict=True):
        values[filled] = end / counts[filled]
    return {"lower": ends[0].tolist(), "upper": ends[1].tolist()}


def _held_out(
    prediction: Prediction,
    targets: np.ndarray,
    places: np.ndarray,
    classes: Sequence[str],
    generator: np.random.Generator,
) -> dict[str, Any]:
    """Returns the predictions of some rows beside their targets."""
    most = min(_MOST_ROWS, _MOST_PROBABILITIES // max(len(classes), 1))
    rows = sampled(len(targets), most, generator)
    if len(rows) < len(targets):
        prediction, targets = prediction.take(rows), targets[rows]
    found: dict[str, Any] = {"rows": len(places), "row": (places[rows] + 1).tolist()}
    if classes:
        return found | {
            "target": [classes[index] for index in targets],
            "probabilities": np.asarray(prediction.probabilities).tolist(),
        }
    lower, upper = prediction.interval(LEVELS)
    return found | {
        "target": targets[:, 0].tolist(),
        "mean": np.asarray(prediction.mean)[:, 0].tolist(),
        "intervals": [
            {
                "level": level,
                "lower": lower[:, LEVELS.index(level), 0].tolist(),
                "upper": upper[:, LEVELS.index(level), 0].tolist(),
            }
            for level in (0.5, 0.9)
        ],
    }


def _by_linear_model(names: Sequence[str], baselines: Baselines) -> list[str]:
    """Returns the columns, those with the greatest weight in a linear model first."""
    weights = baselines.models[-1].weights
    if weights is None:
        return list(names)
    sizes, first = {}, 0
    for column in baselines.encoding.columns:
        part = np.abs(weights[first : first + column.width])
        sizes[column.name] = float(part.max(initial=0.0))
        first += column.width
    return sorted(names, key=lambda name: -sizes[name])


def _rounded(value: Any) -> Any:
    """Returns JSON values with fewer digits, and None for what is not finite."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
    return value
