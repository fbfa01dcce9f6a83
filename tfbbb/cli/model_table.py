"""An exported model and the table that a command gives to it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import typer

from tfbbb.base.texts import shown_number
from tfbbb.cli.errors import EXIT_USELESS_COLUMN, CommandError
from tfbbb.cli.notes import echo_note
from tfbbb.cli.table_targets import read_targets, read_usable_targets
from tfbbb.export.inputs import find_faults, to_tensors
from tfbbb.export.manifest import Manifest
from tfbbb.judging.evaluation.baselines import Baselines
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.row_warnings import ColumnFaults, Faults, ReadColumns
from tfbbb.tables.scan import read_cells


@dataclass(frozen=True)
class ModelTable:
    """The rows of a table as a model reads them."""

    path: Path
    data: Path
    manifest: Manifest
    table: pa.Table
    inputs: dict[str, np.ndarray]
    places: np.ndarray
    faults: Faults
    target_remarks: Sequence[str] = ()

    @classmethod
    def read(cls, model: Path, data: Path, sheet: str | None = None) -> "ModelTable":
        """Reads the manifest of a model and a table."""
        path = resolve_model(model)
        manifest = Manifest.read(path)
        columns = [feature.column for feature in manifest.features]
        table = read_cells(data, sheet=sheet, notify=echo_note)
        inputs = ReadColumns.read(columns, table)
        faults = find_faults(to_tensors(inputs, manifest), manifest)
        places = np.arange(table.num_rows)
        return cls(path, data, manifest, table, inputs, places, faults)

    @property
    def remarks(self) -> list[str]:
        """Sentences about columns that are not as in training in most rows."""
        return [*self.target_remarks, *self.faults.by_column().describe()]

    def _describe_far(self, targets: np.ndarray) -> list[str]:
        """Returns a sentence if most targets are far from those of training."""
        baselines = Baselines.read(self.path)
        if baselines is None:
            return []
        notations = self.manifest.read_target_notations()

        def show(value: float, place: int) -> str:
            notation = notations[place]
            if isinstance(notation, NumberNotation) and notation.percent:
                return f"{shown_number(100.0 * value, 3)} %"
            return shown_number(value, 3)

        return baselines.describe_far(targets, self.manifest.target_names, show)

    def has_targets(self) -> bool:
        """Whether the table has the columns of the targets, with values to use."""
        names = self.manifest.target_names
        if not names or not {*names} <= {*self.table.column_names}:
            return False
        return bool(read_targets(self.table, self.manifest).known.any())

    def with_targets(self) -> tuple["ModelTable", np.ndarray]:
        """Returns the rows with a target to use, and their targets."""
        targets = read_usable_targets(self.table, self.manifest)
        values = targets.values[targets.known]
        given = replace(
            self._take(targets.known), target_remarks=self._describe_far(values)
        )
        return given, values

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


def end_if_useless(faults: ColumnFaults, *, blank: bool = True) -> None:
    """Ends the command with exit code 3 if a model can use no cell of a column."""
    if useless := faults.useless(blank=blank):
        names = ", ".join(map(repr, useless))
        echo_note(
            f"The model can use no cell of {names}, so its answers come from the "
            "other columns. Write the cells as the training table has them."
        )
        raise typer.Exit(EXIT_USELESS_COLUMN)


def resolve_model(path: Path) -> Path:
    """Returns the path if it is a SavedModel, else the highest version under it."""
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
