"""The table and the output directory of a training, checked before TensorFlow loads."""

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfbbb.base.types import JsonObject
from tfbbb.cli.errors import CommandError
from tfbbb.cli.inspect import echo_columns, echo_schema
from tfbbb.tables.column_names import list_names

if TYPE_CHECKING:
    import pyarrow as pa

    from tfbbb.tables import Schema
    from tfbbb.tables.table_error import ColumnError
    from tfbbb.training import JobSpec
    from tfbbb.training.record import TrainingRecord

# Every exported model is larger.
_MIN_MODEL_BYTES = 2**16


def read_training_table(
    path: Path,
    fields: JsonObject,
    ignored: Sequence[str],
    *,
    sheet: str | None,
    record: "TrainingRecord | None" = None,
) -> "tuple[pa.Table, JobSpec]":
    """Reads a table, and prints what its file and its columns were taken for."""
    from tfbbb.cli.job_options import leave_out, validate_fields
    from tfbbb.tables.scan import read_cells

    job = validate_fields(fields)
    table = read_cells(path, sheet=sheet, notify=typer.echo)
    job = validate_fields(leave_out(fields, table.column_names, ignored))
    schema = _find_schema(table, job, record)
    echo_schema(schema)
    echo_columns(schema)
    return table, job


def _find_schema(
    table: "pa.Table", job: "JobSpec", record: "TrainingRecord | None"
) -> "Schema":
    """Returns the schema of the parent version, else infers it from the table."""
    if record is not None:
        record.check_continuation(job, table.column_names)
        return record.schema
    import pyarrow as pa

    from tfbbb.tables.table_error import ColumnError
    from tfbbb.training.split import find_rows_with_target, infer_schema

    known, choices = find_rows_with_target(table, job)
    if not known.all():
        number = int((~known).sum())
        rows = "1 row has" if number == 1 else f"{number} rows have"
        kind = "target" if len(job.targets) == 1 else "value of all targets"
        typer.echo(f"{rows} no {kind} {list_names(job.targets)} and are left out.")
        table = table.filter(pa.array(known))
    try:
        return infer_schema(table, job, choices)
    except ColumnError as error:
        if error.column in job.targets:
            raise
        raise CommandError(f"{error} {_suggest_options(error)}") from None


def _suggest_options(error: "ColumnError") -> str:
    names = (error.column, *error.others)
    options = " ".join(f"--ignore {shlex.quote(name)}" for name in names)
    leaves = "leaves it out" if len(names) == 1 else "leave them out"
    return f"({options} {leaves}.)"


def check_output(output: Path) -> None:
    """Raises `CommandError` before training if the model could not be written after."""
    if output.exists() and not output.is_dir():
        raise CommandError(f"{output} is a file; name a directory with --output.")
    if (output / "saved_model.pb").exists():
        raise CommandError(
            f"{output} is a version of a model; name the directory above it."
        )
    if output.name.isdecimal():
        raise CommandError(
            f"{output} names a version, but the command numbers versions itself; name "
            "the directory of the model, e.g. saved_models/NAME."
        )
    existing = next(path for path in (output, *output.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(bytes(_MIN_MODEL_BYTES))
    except OSError as error:
        raise CommandError(
            f"Cannot write a model under {output}: {error.strerror}."
        ) from None
