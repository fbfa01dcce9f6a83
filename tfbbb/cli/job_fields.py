"""The fields of a job, from the options of a command."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfbbb.cli.errors import CommandError

if TYPE_CHECKING:
    from tfbbb.training.spec import JobSpec


def job_fields(
    target: str,
    spec: Path | None,
    *,
    name: str,
    start_from: int | None = None,
    task: str | None = None,
    text: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    hidden: str | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    max_seconds: float | None = None,
    validation_fraction: float | None = None,
    validation_column: str | None = None,
    validation_time: str | None = None,
    validation_group: str | None = None,
    partitions: int | None = None,
    devices: str | None = None,
    seed: int | None = None,
) -> dict[str, Any]:
    """Returns the fields of a `JobSpec` that a file or options set.

    An option overrides the same field of the file.

    Args:
        target: The column to predict.
        spec: JSON file of further fields.
        name: Name of the model.
        start_from: Version of the model whose posterior becomes the prior.
        task: `"regression"` or `"classification"`.
        text: Columns that are categories.
        columns: What columns are, as `COLUMN=KIND`.
        hidden: Units of the hidden layers, separated by commas.
        epochs: Passes over the rows.
        batch_size: Rows per step.
        learning_rate: Learning rate at the start.
        max_seconds: Seconds of the training.
        validation_fraction: Fraction of the rows to hold out.
        validation_column: Column that marks the rows to hold out.
        validation_time: Column by which the last rows are held out.
        validation_group: Column whose groups of rows stay together.
        partitions: Number of partitions.
        devices: `"one"` or `"all"`.
        seed: Seed.

    Raises:
        CommandError: The file is not a JSON object, or a field is not valid.
    """
    fields = {**_read_json(spec), "target": target}
    validate_fields(fields)
    units = (
        None if hidden is None else [int(part) for part in hidden.split(",") if part]
    )
    training: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "max_seconds": max_seconds,
        "partitions": partitions,
        "devices": devices,
        "seed": seed,
        "validation": _merge_validation(
            fields.get("training", {}).get("validation", {}),
            _drop_none(
                fraction=validation_fraction,
                column=validation_column,
                time=validation_time,
                group=validation_group,
            ),
        ),
    }
    fields |= _drop_none(task=task, text_columns=text or None)
    if columns:
        fields["columns"] = {**fields.get("columns", {}), **parse_columns(columns)}
    if start_from is not None:
        fields["start_from"] = {"model": name, "version": start_from}
    for part, options in (("model", {"hidden_units": units}), ("training", training)):
        if given := _drop_none(**options):
            fields[part] = {**fields.get(part, {}), **given}
    validate_fields(fields)
    return fields


def validate_fields(fields: dict[str, Any]) -> "JobSpec":
    """Builds a `JobSpec` from its fields.

    Raises:
        CommandError: A field is not valid; the message names the field.
    """
    from pydantic import ValidationError

    from tfbbb.base.validation_errors import describe_validation_error
    from tfbbb.training.spec import JobSpec

    try:
        return JobSpec.model_validate(fields)
    except ValidationError as error:
        raise CommandError(describe_validation_error(error.errors()[0])) from None


def parse_columns(given: Sequence[str]) -> dict[str, str]:
    """Returns what columns are, by name, of texts `COLUMN=KIND`."""
    split = (text.rpartition("=") for text in given)
    return {name.strip(): kind.strip() for name, _, kind in split}


def leave_out(
    fields: dict[str, Any], names: Sequence[str], ignored: Sequence[str]
) -> dict[str, Any]:
    """Returns the fields of a job without the ignored columns.

    Args:
        fields: The fields of the job.
        names: The columns of the table.
        ignored: Columns to leave out.

    Raises:
        CommandError: The table has no column of an ignored name, or no feature is
            left.
    """
    from tfbbb.tables.column_names import describe_missing_column, list_names

    for name in ignored:
        if name not in names:
            raise CommandError(describe_missing_column(name, names, role="ignored"))
    spec = validate_fields(fields)
    unused = {name for name, kind in spec.columns.items() if kind == "ignore"}
    left_out = {*ignored, *unused}
    features = spec.features or [
        name for name in names if name not in spec.not_features
    ]
    features = [name for name in features if name not in left_out]
    if not features:
        raise CommandError(
            f"No column is left to predict {spec.target!r} from; the table's columns "
            f"are {list_names(names)}."
        )
    if spec.features is not None:
        return {**fields, "features": features}
    columns = {**spec.columns, **dict.fromkeys(ignored, "ignore")}
    columns = {name: kind for name, kind in columns.items() if name != spec.target}
    kept = {k: v for k, v in spec.columns.items() if k == spec.target}
    return {**fields, "columns": {**columns, **kept}} if columns or kept else fields


def _merge_validation(
    of_file: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any] | None:
    """Returns the `validation` of a file with options; None without options.

    A column of the options replaces that of the file, and any other column than
    `column` goes with a fraction.
    """
    if not options:
        return None
    kept = set() if "column" in options else {"fraction"}
    if options.keys() == {"fraction"}:
        kept = {"time", "group"}
    return {name: of_file[name] for name in kept & of_file.keys()} | options


def _drop_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _read_json(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        fields = json.loads(path.read_text())
    except ValueError as error:
        raise CommandError(f"{path} is not JSON: {error}.") from None
    if not isinstance(fields, dict):
        raise CommandError(f"{path} must hold a JSON object.")
    return fields
