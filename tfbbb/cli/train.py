"""`tfbbb train`."""

import shlex
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.cli.prediction_options import Sheet, Table
from tfbbb.cli.training_options import (
    BatchSize,
    Columns,
    Epochs,
    Hidden,
    Ignore,
    LearningRate,
    Seed,
    Spec,
    StartFrom,
    Target,
    Task,
    Text,
    ValidationColumn,
    ValidationFraction,
    ValidationGroup,
    ValidationTime,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from tfbbb.data import Schema
    from tfbbb.data.table_error import ColumnError
    from tfbbb.training import JobSpec
    from tfbbb.training.record import TrainingRecord


# Every exported model is larger.
_MIN_MODEL_BYTES = 2**16


def train(
    data: Table,
    target: Target,
    output: Annotated[
        Path,
        typer.Option(
            help="Directory of the model, e.g. saved_models/NAME; the command writes "
            "the next version under it."
        ),
    ],
    sheet: Sheet = None,
    task: Task = None,
    ignore: Ignore = None,
    text: Text = None,
    column: Columns = None,
    hidden: Hidden = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    validation_fraction: ValidationFraction = None,
    validation_column: ValidationColumn = None,
    validation_time: ValidationTime = None,
    validation_group: ValidationGroup = None,
    seed: Seed = None,
    start_from: StartFrom = None,
    spec: Spec = None,
) -> None:
    """Train a Bayesian network on a table and export it.

    Example: tfbbb train houses.csv --target price --output saved_models/houses
    """
    with errors_in_one_sentence():
        from tfbbb.cli.job_fields import job_fields, leave_out, validate_fields
        from tfbbb.data import read_table
        from tfbbb.data.column_names import check_column_exists
        from tfbbb.training.record import TrainingRecord

        _check_output(output)
        fields = job_fields(
            target,
            spec,
            name=output.resolve().name,
            start_from=start_from,
            task=task,
            text=text,
            columns=column,
            hidden=hidden,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            validation_fraction=validation_fraction,
            validation_column=validation_column,
            validation_time=validation_time,
            validation_group=validation_group,
            seed=seed,
        )
        job = validate_fields(fields)
        parent = _find_parent_version(job, output)
        record = TrainingRecord.read(parent) if parent else None
        known = record.schema.read_as_text if record else ()
        texts = (*job.read_as_text, *known)
        table = read_table(data, text_columns=texts, sheet=sheet, notify=typer.echo)
        for name in job.text_columns:
            check_column_exists(table, name, role="text")
        job = validate_fields(leave_out(fields, table.column_names, ignore or ()))
        schema = _find_schema(table, job, record)

        from tfbbb.cli.column_report import echo_columns
        from tfbbb.cli.imports import import_tensorflow
        from tfbbb.cli.report import echo_figures, echo_schema

        echo_schema(schema)
        echo_columns(schema)
        began = time.monotonic()
        import_tensorflow()
        loading = time.monotonic() - began
        from rich.console import Console

        from tfbbb.cli.epoch_bar import EpochBar
        from tfbbb.diverged_training import TrainingDivergedError
        from tfbbb.training import train_table

        try:
            with EpochBar(Console(stderr=True)) as bar:
                trained = train_table(
                    table,
                    job,
                    start_from=parent,
                    report=lambda at: bar.show(
                        at.epoch, at.epochs, at.figures, at.stage
                    ),
                )
        except TrainingDivergedError as error:
            raise CommandError(
                "Training diverged: its loss or held-out figures are not finite; lower "
                f"--learning-rate. Received: --learning-rate {error.learning_rate:g}"
            ) from None
        echo_figures(trained)
        typer.echo(f"exported to {trained.export(output)}")
        if job.training.max_seconds is not None:
            whole = time.monotonic() - began
            typer.echo(
                f"it took {whole:.1f} s, of which {loading:.1f} s to load TensorFlow, "
                "which max_seconds does not count"
            )


def _find_parent_version(job: "JobSpec", output: Path) -> Path | None:
    """Returns the version whose posterior becomes the prior; None without start_from.

    The directory of that version's model is beside the output directory.
    """
    if job.start_from is None:
        return None
    model = output.resolve().parent / job.start_from.model
    version = model / str(job.start_from.version)
    if not (version / "saved_model.pb").is_file():
        raise CommandError(
            f"There is no version to start from at {version}; name an existing version "
            "with --start-from."
        )
    return version


def _find_schema(
    table: "pa.Table", job: "JobSpec", record: "TrainingRecord | None"
) -> "Schema":
    """Returns the schema of the parent version, else infers it from the table."""
    if record is not None:
        from tfbbb.training.continuation import check_continuation

        check_continuation(job, record, table.column_names)
        return record.schema
    import pyarrow as pa

    from tfbbb.data.table_error import ColumnError
    from tfbbb.training.rows_with_target import find_rows_with_target, infer_schema

    known = find_rows_with_target(table, job)
    if not known.all():
        number = int((~known).sum())
        rows = "1 row has" if number == 1 else f"{number} rows have"
        typer.echo(f"{rows} no target {job.target!r} and are left out.")
        table = table.filter(pa.array(known))
    try:
        return infer_schema(table, job)
    except ColumnError as error:
        if error.column == job.target:
            raise
        raise CommandError(f"{error} {_suggest_options(error)}") from None


def _suggest_options(error: "ColumnError") -> str:
    column = shlex.quote(error.column)
    options = f"--ignore {column} leaves it out"
    if error.may_be_text:
        options += f", --text {column} reads it as text"
        options += f", --column {column}=KIND says what it is"
    return f"({options}.)"


def _check_output(output: Path) -> None:
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
