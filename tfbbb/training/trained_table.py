"""The result of training on a table, and the report of its version."""

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tfbbb.base.garbage_collection import rare_garbage_collection
from tfbbb.base.types import Config
from tfbbb.export.manifest import REPORT_FILE
from tfbbb.export.versions import next_version
from tfbbb.judging.drift_reference import REFERENCE_FILE, DriftReference
from tfbbb.judging.evaluation.baselines import BASELINES_FILE, Baselines, one_by_one
from tfbbb.judging.explain.effects import effect
from tfbbb.judging.explain.importance import permutation_importance
from tfbbb.judging.explain.rows import Rows, of_targets, predicted, sampled
from tfbbb.judging.explain.variance_split import variance_split
from tfbbb.judging.report import FORMAT, MOST_ROWS, calibration, held_out, rounded
from tfbbb.judging.types import Model
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.diagnosis import Diagnosis, diagnosed, share_of_total
from tfbbb.tables import Schema, TableScan
from tfbbb.tables.notations.words import spellings
from tfbbb.training.job_clock import JobClock
from tfbbb.training.parent_version import ParentVersion
from tfbbb.training.run import Run
from tfbbb.training.spec import JobSpec

# Rows times columns behind the importance, and the fewest rows of a wide table.
_ROWS_TIMES_COLUMNS, _FEWEST_ROWS = 8000, 100
_MOST_EFFECTS, _POINTS, _ROWS_OF_EFFECT = 12, 15, 50
_DRAWS = 20
# The rows that show how a table writes two values.
_ROWS_READ = 10_000


@dataclass(frozen=True)
class TrainedTable:
    """A model trained on a table.

    Attributes:
        model: The model, in raw units.
        schema: The schema of the table.
        spec: The spec, with the chosen `model.hidden_units`.
        num_training_rows: Number of training rows.
        held_out_rows: Indices of the held-out rows; empty if the metrics are those of
            all rows, each predicted by members that did not train on it.
        metrics: Metrics on the held-out rows. If the model is recalibrated, each row is
            scored by a recalibration that was fitted to other held-out rows.
        log_likelihoods: Log-likelihood of each row that the metrics are of, [n], whose
            mean is that of the metrics if rows have no weights.
        recalibration_choice: What was tried as recalibration, what was chosen and why.
        recipe: What was chosen and why: see `tfbbb.training.recipe`.
        judgement: The figures of the model beside those of its baselines, and what they
            mean in plain sentences: see `tfbbb.evaluation.judge`.
        baselines: The baselines, fitted to the training rows.
        drift_reference: The scores of the held-out rows; None if members leave out
            folds of the rows.
        report: What the training measured, for people: see `VersionReport`.
        clock: Times the export, too; None for a model that no training has made.
    """

    model: BayesianModel
    schema: Schema
    spec: JobSpec
    num_training_rows: int
    held_out_rows: np.ndarray
    metrics: Mapping[str, float]
    log_likelihoods: np.ndarray = field(default_factory=lambda: np.zeros(0))
    recalibration_choice: Config = field(default_factory=dict)
    recipe: Config = field(default_factory=dict)
    judgement: Config = field(default_factory=dict)
    baselines: Baselines | None = None
    drift_reference: DriftReference | None = None
    report: "VersionReport | None" = None
    clock: JobClock | None = field(default=None, repr=False, compare=False)

    def export(
        self,
        root: str | os.PathLike[str],
        *,
        format: str = "saved_model",
        lineage: Config | None = None,
        **options: Any,
    ) -> Path:
        """Writes the next version of the model under a directory, or one file.

        Args:
            root: Directory of the model, e.g. `saved_models/NAME`; created if missing.
                For other formats than `"saved_model"`, which have no versions, where to
                write; nothing may be there yet.
            format: As for `BayesianModel.export_predictive`.
            lineage: Origin of the model, as plain JSON values, for the manifest.
            **options: Options of the format, such as `method` and `num_samples`.

        Returns:
            The directory of the new version, `root/VERSION`; for other formats `root`.

        Raises:
            ValueError: The format is unknown.
        """
        if format != "saved_model":
            self.export_to(root, format=format, lineage=lineage, **options)
            return Path(root)
        while True:
            path = next_version(root)
            try:
                self.export_to(path, lineage=lineage, **options)
            except FileExistsError:
                # Another process has written this version meanwhile.
                if not path.exists():
                    raise
            else:
                return path

    @rare_garbage_collection()
    def export_to(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "saved_model",
        lineage: Config | None = None,
        **options: Any,
    ) -> None:
        """Writes the model at a path that must not exist yet.

        A SavedModel, also within a model of MLflow, includes the files that a later
        training needs to start from this version.

        Args:
            path: Directory or file to write.
            format: As for `export`.
            lineage: As for `export`; an ONNX file has none.
            **options: As for `export`.
        """
        clock = self.clock or JobClock()
        clock.begin("report")
        if format != "onnx":
            options |= {
                "metrics": self.metrics,
                "recalibration_choice": self.recalibration_choice,
                "lineage": {
                    **(lineage or {}),
                    "recipe": dict(self.recipe),
                    "judgement": dict(self.judgement),
                },
                "extra_files": self._extra_files(clock),
            }
        clock.begin("model")
        self.model.export_predictive(path, format=format, schema=self.schema, **options)

    def _extra_files(self, clock: JobClock) -> dict[str, bytes]:
        files = ParentVersion.from_model(self.model, self.schema, self.spec).files()
        if self.baselines is not None:
            files[BASELINES_FILE] = self.baselines.to_json()
        if self.drift_reference is not None:
            files[REFERENCE_FILE] = self.drift_reference.to_json()
        if self.report is not None:
            # A limit is one of the clock on the wall, however busy the machine is.
            limited = math.isfinite(clock.limit)
            now = time.monotonic if limited else time.process_time
            report = self.report.to_dict(now)
            files[REPORT_FILE] = json.dumps(report, allow_nan=False).encode()
        return files


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
    target_names: Sequence[str]
    of_targets: Sequence[Config]
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
        prediction: Any = calibrated.prediction
        classes = list(schema.classes)
        generator = np.random.default_rng(0)
        predictions = [prediction]
        if schema.more_targets:
            number = len(schema.target_columns)
            predictions = [prediction.of_target(place) for place in range(number)]
        measured: list[Config] = [
            {
                "calibration": calibration(alone, y, generator),
                "held_out": held_out(alone, y, places, classes, generator),
            }
            for alone, y in zip(
                predictions, one_by_one(targets, len(predictions)), strict=True
            )
        ]
        figures = {
            "task": schema.task,
            "classes": classes,
            "metrics": dict(calibrated.metrics),
            "metrics_from": recipe["metrics_from"],
            "judgement": dict(run.judgement),
            "remarks": list(recipe["remarks"]),
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
            _by_linear_model(
                [column.name for column in schema.predictors], run.baselines.of_all
            ),
            figures,
            schema.target_names,
            measured,
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
        number = len(self.of_targets)
        parts: list[Config] = []
        shares: list[float] = []
        for name, measured, model, y in zip(
            self.target_names,
            self.of_targets,
            of_targets(self.model, number),
            one_by_one(self.targets, number),
            strict=True,
        ):
            found, share = self._explain(model, y, clock, self.seconds / number)
            parts.append({"target": name, **measured, **found})
            shares += [] if share is None else [share]
        share = float(np.mean(shares)) if shares else None
        report: Config = rounded(
            {
                "format": FORMAT,
                **self.figures,
                "diagnosis": replace(self.diagnosis, epistemic_share=share).to_json(),
                **(parts[0] if number == 1 else {"targets": parts}),
            }
        )
        return report

    def _explain(
        self,
        model: Model,
        targets: np.ndarray,
        clock: Callable[[], float],
        seconds: float,
    ) -> tuple[Config, float | None]:
        """Returns the explanations of one target, and its epistemic share."""
        end_of_importance = clock() + 0.5 * seconds
        end = end_of_importance + 0.5 * seconds
        rows, names = self.rows, list(self.rows.columns)
        split = variance_split(predicted(model, rows, None, None))
        found: Config = {
            "variance_split": {"rows": self.num_rows, **split.to_dict(self.places)},
            "importance": None,
            "effects": [],
        }
        if clock() < end_of_importance:
            importance = permutation_importance(
                model,
                rows.inputs,
                targets,
                names=names,
                repeats=1,
                max_rows=max(_FEWEST_ROWS, _ROWS_TIMES_COLUMNS // len(names)),
                num_samples=_DRAWS,
                track=lambda _: takewhile(
                    lambda _: clock() < end_of_importance, self.columns
                ),
            )
            measured = [column.name for column in importance]
            found["importance"] = {
                "rows": self.num_rows,
                "columns": list(map(asdict, importance)),
                "left_out": [name for name in names if name not in measured],
            }
            found["effects"] = [
                effect(
                    model,
                    rows.inputs,
                    name,
                    names=names,
                    points=_POINTS,
                    max_rows=_ROWS_OF_EFFECT,
                    num_samples=_DRAWS,
                )
                .spelled(self.spellings.get(name, {}))
                .to_dict()
                for name in takewhile(lambda _: clock() < end, measured[:_MOST_EFFECTS])
                if rows.has_values(name)
            ]
        share = share_of_total(split.epistemic, split.epistemic + split.aleatoric)
        return found, share


def _spellings(
    source: pa.Table | TableScan, schema: Schema
) -> dict[str, dict[float, str]]:
    """Returns how the first rows write the values of columns of two values."""
    notations = {column.name: column.notation for column in schema.features}
    rows = source.head(_ROWS_READ) if isinstance(source, TableScan) else source
    return spellings(rows, notations)


def _by_linear_model(names: Sequence[str], baselines: Baselines) -> list[str]:
    """Returns the columns, those with the greatest weight in a linear model first."""
    # Of several targets, in units of what is left of each.
    found = [
        model.weights / (model.scale or 1.0)
        for model in baselines.models
        if model.weights is not None
    ]
    if not found:
        return list(names)
    weights = np.concatenate(found, axis=1)
    sizes, first = {}, 0
    for column in baselines.encoding.columns:
        part = np.abs(weights[first : first + column.width])
        sizes[column.name] = float(part.max(initial=0.0))
        first += column.width
    return sorted(names, key=lambda name: -sizes[name])
