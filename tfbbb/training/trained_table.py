"""The result of training on a table."""

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfbbb.base.garbage_collection import rare_garbage_collection
from tfbbb.base.types import Config
from tfbbb.export.manifest import REPORT_FILE
from tfbbb.export.versions import next_version
from tfbbb.judging.drift_reference import REFERENCE_FILE, DriftReference
from tfbbb.judging.evaluation.baselines import BASELINES_FILE, Baselines
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.tables import Schema
from tfbbb.training.job_clock import JobClock
from tfbbb.training.parent_version import continuation_files
from tfbbb.training.spec import JobSpec

if TYPE_CHECKING:
    from tfbbb.training.version_report import VersionReport


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
        metrics: Metrics on the held-out rows; see `tfbbb.training.held_out`. If the
            model is recalibrated, each row is scored by a recalibration that was fitted
            to other held-out rows.
        log_likelihoods: Log-likelihood of each row that the metrics are of, [n], whose
            mean is that of the metrics if rows have no weights.
        recalibration_choice: What was tried as recalibration, what was chosen and why.
        recipe: What was chosen and why: see `tfbbb.training.recipe`.
        judgement: The figures of the model beside those of its baselines, and what they
            mean in plain sentences: see `tfbbb.evaluation.judge`.
        baselines: The baselines, fitted to the training rows.
        drift_reference: The scores of the held-out rows; None if members leave out
            folds of the rows.
        report: What the training measured, for people: see
            `tfbbb.training.version_report`.
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
        self._begin("report")
        if format != "onnx":
            options |= self._description(lineage)
        self._begin("model")
        self.model.export_predictive(path, format=format, schema=self.schema, **options)

    def _begin(self, part: str) -> None:
        if self.clock is not None:
            self.clock.begin(part)

    def _description(self, lineage: Config | None) -> Config:
        """Returns what a SavedModel tells beside the model and its schema."""
        return {
            "metrics": self.metrics,
            "recalibration_choice": self.recalibration_choice,
            "lineage": {
                **(lineage or {}),
                "recipe": dict(self.recipe),
                "judgement": dict(self.judgement),
            },
            "extra_files": self._extra_files(),
        }

    def _extra_files(self) -> dict[str, bytes]:
        files = continuation_files(self.model, self.schema, self.spec)
        if self.baselines is not None:
            files[BASELINES_FILE] = self.baselines.to_json()
        if self.drift_reference is not None:
            files[REFERENCE_FILE] = self.drift_reference.to_json()
        if self.report is not None:
            # A limit is one of the clock on the wall, however busy the machine is.
            limited = self.clock is not None and math.isfinite(self.clock.limit)
            now = time.monotonic if limited else time.process_time
            files[REPORT_FILE] = self.report.to_json(now)
        return files
