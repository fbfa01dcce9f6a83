"""The version that serves, beside which the next one is judged."""

import contextlib
import logging
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from tfbbb.base.row_weights import mean_and_error
from tfbbb.base.types import Config
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.manifest import Manifest, ManifestError
from tfbbb.export.reader import load
from tfbbb.export.versions import version_number, versions_under
from tfbbb.judging.evaluation.judgement import compare, is_worse
from tfbbb.judging.evaluation.predicted_rows import PredictedRows
from tfbbb.judging.types import Inputs
from tfbbb.tables import Schema

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServingVersion:
    """The version that serves, in the directory of its SavedModel."""

    directory: Path

    @classmethod
    def under(cls, root: Path) -> "ServingVersion | None":
        """Returns the newest version of a directory that may be `latest`, if any is."""
        for directory in versions_under(root):
            # A SavedModel of another program, or a damaged one, serves nothing.
            with contextlib.suppress(ManifestError):
                if Manifest.read(directory).becomes_latest:
                    return cls(directory)
        return None

    @property
    def name(self) -> str:
        return f"version {version_number(self.directory)}, which serves"

    @cached_property
    def model(self) -> ExportedModel:
        """The model, as NumPy or TensorFlow computes it."""
        return load(self.directory)

    def clearly_better(
        self, own: PredictedRows, inputs: Inputs, targets: np.ndarray, schema: Schema
    ) -> tuple[Config, PredictedRows] | None:
        """Compares a new model with this version on the rows that measure the model.

        This version may have been trained on these rows, which flatters it. It is
        therefore clearly better only if it is so twice: on these rows, by the paired
        differences, and by its own figures from when it was made, which are of rows
        that it had not seen.
        """
        try:
            manifest = self.model.manifest
        except (ManifestError, OSError) as error:
            logger.warning("%s, is not compared: %s", self.name, error)
            return None
        names = [feature.name for feature in manifest.features]
        same = names == [column.name for column in schema.features]
        if not same or (manifest.classes or ()) != tuple(schema.classes):
            return None
        try:
            prediction = self.model.predictive(inputs)
            theirs = PredictedRows.score(prediction, targets)
            theirs = replace(theirs, weights=own.weights)
        except ValueError:
            # Other kinds of columns, or targets that its likelihood does not have.
            return None
        comparison = compare(own, theirs, targets)
        unpaired = self._unpaired(own, targets)
        both = {
            part: {"z": max(found["z"], unpaired.get(part, -np.inf))}
            for part, found in comparison.items()
        }
        return (comparison, theirs) if is_worse(both) else None

    def _unpaired(self, own: PredictedRows, targets: np.ndarray) -> dict[str, float]:
        """Returns how many standard errors its own figures are worse, negative then."""
        lineage = self.model.manifest.lineage or {}
        figures = ((lineage.get("judgement") or {}).get("figures") or {}).get("model")
        if not figures:
            return {}
        if own.of_classes:
            error = 1.0 - figures["accuracy"]
        elif own.scores is not None:
            error = figures["integrated_brier_score"]
        else:
            error = np.square(figures["rmse"])
        pairs = {
            "error": (-own.errors(targets), -error),
            "log_likelihood": (own.log_prob, figures["log_likelihood"]),
        }
        return {
            part: _standard_errors(*pair, own.weights) for part, pair in pairs.items()
        }


def _standard_errors(
    scores: np.ndarray, other: float, weights: np.ndarray | None
) -> float:
    mean, error = mean_and_error(scores, weights)
    if error == np.inf:
        return 0.0
    error, difference = np.sqrt(2.0) * error, mean - other
    return difference / error if error > 0 else float(np.sign(difference) * np.inf)
