"""An exported model and the table that a command gives to it."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from tfbbb.cli.errors import CommandError
from tfbbb.cli.prediction_options import echo_note
from tfbbb.cli.table_targets import read_targets, refuse_without_targets
from tfbbb.export.manifest import Manifest
from tfbbb.tables import read_table
from tfbbb.tables.known_targets import KnownTargets, describe_unusable
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

    def targets(self) -> KnownTargets:
        """Returns the targets, of which a row at least has one.

        Notes count the targets that have no density.

        Raises:
            TableError: The table has no column of the target, or no row has a target.
        """
        targets = read_targets(self.table, self.manifest)
        self._note_unusable(targets, "such a row has no log_prob")
        if targets.missing.all():
            refuse_without_targets(str(self.manifest.target), {}, len(targets.values))
        return targets

    def has_targets(self) -> bool:
        """Whether the table has the column of the target, with a value to use."""
        if self.manifest.target not in self.table.column_names:
            return False
        return bool(read_targets(self.table, self.manifest).known.any())

    def with_targets(self) -> tuple["ModelTable", np.ndarray]:
        """Returns the rows with a target to use, and their targets.

        Notes tell how many rows are left out, and why.

        Raises:
            TableError: The table has no column of the target, or no row has a target to
                use.
        """
        targets = read_targets(self.table, self.manifest)
        known, name = targets.known, str(self.manifest.target)
        if not known.any():
            refuse_without_targets(name, targets.unusable, len(known))
        self._note_unusable(targets, "such rows are left out")
        if num_missing := int(targets.missing.sum()):
            echo_note(
                f"{num_missing} of {len(known)} rows have no {name!r} and are left out."
            )
        return self._take(known), targets.values[known]

    def _note_unusable(self, targets: KnownTargets, end: str) -> None:
        """Prints notes that count the targets without a density, with an `end`."""
        name, num_rows = str(self.manifest.target), self.table.num_rows
        for note in describe_unusable(name, targets.unusable, num_rows, end):
            echo_note(note)

    def _take(self, rows: np.ndarray) -> "ModelTable":
        """Returns some of the rows, a mask [n]."""
        if rows.all():
            return self
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
