"""An exported model and the table that a command gives to it."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from tfbbb.cli.errors import CommandError
from tfbbb.cli.prediction_options import echo_note
from tfbbb.cli.table_targets import (
    check_has_target,
    describe_unseen,
    fill_targets,
    read_targets,
    target_column,
    targets_missing,
    without_unseen_classes,
)
from tfbbb.export.manifest import Manifest
from tfbbb.tables import read_table
from tfbbb.tables.read_columns import ReadColumns


@dataclass(frozen=True)
class ModelTable:
    """The rows of a table as a model reads them.

    Attributes:
        path: Directory of the model.
        manifest: Its manifest.
        table: The table of the file.
        inputs: The columns that the model reads, `[n]` by name.
        places: The index of each row in the file, [n].
    """

    path: Path
    manifest: Manifest
    table: pa.Table
    inputs: dict[str, np.ndarray]
    places: np.ndarray

    @classmethod
    def read(cls, model: Path, data: Path, sheet: str | None = None) -> "ModelTable":
        """Reads the manifest of a model and a table.

        Args:
            model: An exported model, or a directory of versions.
            data: File of the table.
            sheet: Sheet of a workbook; the first with rows by default.

        Raises:
            CommandError: There is no model.
            ManifestError: The manifest is malformed.
            TableError: The table cannot be read or does not fit the model.
        """
        path = resolve_model(model)
        manifest = Manifest.read(path)
        columns = [feature.column for feature in manifest.features]
        texts = manifest.read_as_text
        table = read_table(data, text_columns=texts, sheet=sheet, notify=echo_note)
        inputs = ReadColumns.read(columns, table)
        return cls(path, manifest, table, inputs, np.arange(table.num_rows))

    def targets(self) -> np.ndarray:
        """Returns the targets, numbers [n, 1] or class indices [n].

        Raises:
            TableError: The table has no column of the target, or a value is missing or
                does not fit.
        """
        return read_targets(self.table, self.manifest)

    def filled_targets(self) -> tuple[np.ndarray, np.ndarray, dict[int, str]]:
        """Returns the targets, of which some are those of other rows.

        Returns:
            The targets, which rows [n] have none of their own, and the classes that
            training did not have by the index of their rows. A note counts these.

        Raises:
            TableError: The table has no column of the target, no row has a target, or a
                value does not fit.
        """
        name, notation = target_column(self.manifest)
        table, unseen = self._without_unseen_classes("such a row has no log_prob")
        if unseen and table[name].null_count == table.num_rows:
            rows = np.ones(table.num_rows, dtype=bool)
            return np.zeros(table.num_rows, np.int32), rows, unseen
        table, missing = fill_targets(table, name, notation)
        return read_targets(table, self.manifest), missing, unseen

    def has_targets(self) -> bool:
        """Whether the table has the column of the target, with a value."""
        if self.manifest.target not in self.table.column_names:
            return False
        return not targets_missing(self.table, self.manifest).all()

    def with_targets(self) -> tuple["ModelTable", np.ndarray]:
        """Returns the rows with a target, and their targets.

        Rows of a class that training did not have are left out as well. Notes tell how
        many rows are left out.

        Raises:
            TableError: The table has no column of the target, no row has a target, or a
                value does not fit.
        """
        _, unseen = self._without_unseen_classes("such rows are left out")
        if unseen:
            known = np.ones(self.table.num_rows, dtype=bool)
            known[list(unseen)] = False
            check_has_target(str(self.manifest.target), bool(known.any()))
            return self._take(known).with_targets()
        missing = targets_missing(self.table, self.manifest)
        num_missing = int(missing.sum())
        if not num_missing:
            return self, self.targets()
        check_has_target(str(self.manifest.target), num_missing < len(missing))
        echo_note(
            f"{num_missing} of {len(missing)} rows have no {self.manifest.target!r} "
            "and are left out."
        )
        kept = self._take(~missing)
        return kept, kept.targets()

    def _without_unseen_classes(self, end: str) -> tuple[pa.Table, dict[int, str]]:
        """Calls `without_unseen_classes`; a note counts the rows and has the `end`."""
        name, notation = target_column(self.manifest)
        classes = self.manifest.classes
        table, unseen = without_unseen_classes(self.table, name, classes, notation)
        if unseen:
            echo_note(describe_unseen(name, unseen, table.num_rows, end))
        return table, unseen

    def _take(self, rows: np.ndarray) -> "ModelTable":
        """Returns some of the rows, a mask [n]."""
        return replace(
            self,
            table=self.table.filter(pa.array(rows)),
            inputs={name: values[rows] for name, values in self.inputs.items()},
            places=self.places[rows],
        )


def resolve_model(path: Path) -> Path:
    """Returns the path if it is a SavedModel, else the highest version under it.

    Raises:
        CommandError: There is no model.
    """
    from tfbbb.export.versions import newest_version

    if (path / "saved_model.pb").is_file():
        return path
    newest = newest_version(path)
    if newest is None:
        reason = "there is no such directory"
        if path.exists():
            reason = "it holds neither a saved_model.pb nor numbered versions"
        raise CommandError(f"{path} is not a model: {reason}.")
    return newest
