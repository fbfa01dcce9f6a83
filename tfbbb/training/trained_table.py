"""What training on a table gives."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfbbb.data import Schema
from tfbbb.export.versions import next_version
from tfbbb.model import BayesianModel
from tfbbb.training.parent_version import continuation_files
from tfbbb.training.spec import JobSpec


@dataclass(frozen=True)
class TrainedTable:
    """A model trained on a table.

    Attributes:
        model: The model, in raw units.
        schema: What it knows about the table.
        spec: What was asked for; `model.hidden_units` is what was taken.
        num_training_rows: Number of rows it was trained on.
        held_out_rows: Indices of the other rows.
        metrics: Held-out figures, as `tfbbb.training.held_out` has them.
    """

    model: BayesianModel
    schema: Schema
    spec: JobSpec
    num_training_rows: int
    held_out_rows: np.ndarray
    metrics: Mapping[str, float]

    def export(
        self,
        root: str | os.PathLike[str],
        *,
        lineage: Mapping[str, Any] | None = None,
    ) -> Path:
        """Writes the next version of the model under a directory.

        Args:
            root: Directory of the model, e.g. `saved_models/NAME`; it is made where
                there is none.
            lineage: What the model came from, to keep with it: plain JSON values.

        Returns:
            The directory of the new version, `root/VERSION`.
        """
        while True:
            path = next_version(root)
            try:
                self.export_to(path, lineage=lineage)
            except FileExistsError:
                # Another process has taken the version meanwhile.
                if not path.exists():
                    raise
            else:
                return path

    def export_to(
        self,
        path: str | os.PathLike[str],
        *,
        lineage: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes the model as one SavedModel at `path`, where nothing may be yet.

        Beside it lies what a later training needs to go on from it.

        Args:
            path: Where to write.
            lineage: As for `export`.
        """
        self.model.export_predictive(
            path,
            schema=self.schema,
            metrics=self.metrics,
            lineage=lineage,
            extra_files=continuation_files(self.model, self.schema, self.spec),
        )
