"""The report of a version: what its training measured, for people."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np
import pyarrow as pa

from tfbbb.base.types import Config
from tfbbb.judging.evaluation.baselines import Baselines
from tfbbb.judging.explain.effects import effect
from tfbbb.judging.explain.importance import permutation_importance
from tfbbb.judging.explain.rows import Rows, predicted, sampled
from tfbbb.judging.explain.variance_split import variance_split
from tfbbb.judging.report import (
    FORMAT,
    MOST_ROWS,
    calibration,
    explanations,
    held_out,
    rounded,
)
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.diagnosis import Diagnosis, diagnosed, share_of_total
from tfbbb.tables import Schema, TableScan
from tfbbb.tables.notations.words import spellings
from tfbbb.training.run import Run

# Rows times columns behind the importance, and the fewest rows of a wide table.
_ROWS_TIMES_COLUMNS, _FEWEST_ROWS = 8000, 100
_MOST_EFFECTS, _POINTS, _ROWS_OF_EFFECT = 12, 15, 50
_DRAWS = 20
# The rows that show how a table writes two values.
_ROWS_READ = 10_000


@dataclass(frozen=True)
class VersionReport:
    """What a training measured.

    Calibration and held-out rows come from the prediction that gave the metrics.
    `to_dict` computes the explanations, from at most 500 rows and for some seconds by a
    clock: only exported versions need them.
    """

    model: BayesianModel
    columns: Sequence[str]
    figures: Config
    diagnosis: Diagnosis
    rows: Rows
    targets: np.ndarray
    places: np.ndarray
    num_rows: int
    seconds: float
    spellings: Mapping[str, dict[float, str]] = field(default_factory=dict)

    @classmethod
    def measure(cls, run: Run) -> "VersionReport":
        """Measures a trained model on the rows that its metrics are of."""
        model, schema, calibrated = run.best.model, run.prepared.schema, run.calibrated
        recipe, targets, places = run.recipe, run.targets, run.places
        prediction = calibrated.prediction
        classes = list(schema.classes)
        generator = np.random.default_rng(0)
        figures = {
            "task": schema.task,
            "target": schema.target.name,
            "classes": classes,
            "metrics": dict(calibrated.metrics),
            "metrics_from": recipe["metrics_from"],
            "judgement": dict(run.judgement),
            "remarks": list(recipe["remarks"]),
            "calibration": calibration(prediction, targets, generator),
            "held_out": held_out(prediction, targets, places, classes, generator),
            "tried": {
                "chosen": recipe["chosen"],
                "networks": recipe["tried"],
                "likelihoods": recipe["likelihoods"],
                "recalibration": dict(calibrated.choice),
            },
        }
        chosen = sampled(len(targets), MOST_ROWS, generator)
        names = [column.name for column in schema.features]
        return cls(
            model,
            _by_linear_model(names, run.baselines.of_all),
            figures,
            diagnosed(model, prediction, targets, None),
            Rows.read(run.inputs, names).take(chosen),
            targets[chosen],
            places[chosen],
            len(targets),
            run.clock.seconds_to_report,
            _spellings(run.source, schema),
        )

    def to_dict(self, clock: Callable[[], float] = time.process_time) -> Config:
        """Explains the model, and returns the report."""
        report = {"format": FORMAT, **self.figures, **self._explanations(clock)}
        found: Config = rounded(report)
        return found

    def to_json(self, clock: Callable[[], float] = time.process_time) -> bytes:
        """Explains the model, and returns the report as JSON."""
        return json.dumps(self.to_dict(clock), allow_nan=False).encode()

    def _explanations(self, clock: Callable[[], float]) -> Config:
        """Returns `diagnosis`, `variance_split`, `importance` and `effects`."""
        end_of_importance = clock() + 0.5 * self.seconds
        end = end_of_importance + 0.5 * self.seconds
        model, rows = self.model, self.rows
        names = list(rows.columns)
        split = variance_split(predicted(model, rows, None, None))
        importance, effects = None, []
        if clock() < end_of_importance:
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
            effects = [
                effect(
                    model,
                    rows.inputs,
                    name,
                    names=names,
                    points=_POINTS,
                    max_rows=_ROWS_OF_EFFECT,
                    num_samples=_DRAWS,
                ).spelled(self.spellings.get(name, {}))
                for name in takewhile(lambda _: clock() < end, measured[:_MOST_EFFECTS])
                if rows.has_values(name)
            ]
        share = share_of_total(split.epistemic, split.epistemic + split.aleatoric)
        return {
            "diagnosis": replace(self.diagnosis, epistemic_share=share).to_json(),
            **explanations(
                split, self.places, importance, effects, names, self.num_rows
            ),
        }


def _spellings(
    source: pa.Table | TableScan, schema: Schema
) -> dict[str, dict[float, str]]:
    """Returns how the first rows write the values of columns of two values."""
    notations = {column.name: column.notation for column in schema.features}
    rows = source.head(_ROWS_READ) if isinstance(source, TableScan) else source
    return spellings(rows, notations)


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
