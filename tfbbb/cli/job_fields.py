"""What is to be trained, as the options of a command say it."""

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
    start_from: int | None,
    task: str | None,
    text: Sequence[str] | None,
    hidden: str | None,
    epochs: int | None,
    batch_size: int | None,
    learning_rate: float | None,
    validation_fraction: float | None,
    seed: int | None,
) -> dict[str, Any]:
    """Gives the fields of a `JobSpec` that are said: by a file, or better by options.

    Args:
        target: The column to predict.
        spec: JSON file of further fields.
        name: The model.
        start_from: The version of it to go on from.
        task: What kind of a target it is.
        text: Columns that are categories.
        hidden: Units of the hidden layers, with commas.
        epochs: Passes over the rows.
        batch_size: Rows per step.
        learning_rate: Learning rate at the start.
        validation_fraction: Fraction of the rows to hold out.
        seed: Seed.

    Raises:
        CommandError: The file is none, or they can't be trained.
    """
    fields = {**_read(spec), "target": target}
    checked(fields)
    units = (
        None if hidden is None else [int(part) for part in hidden.split(",") if part]
    )
    training: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "seed": seed,
        "validation": _given(fraction=validation_fraction) or None,
    }
    fields |= _given(task=task, text_columns=text or None)
    if start_from is not None:
        fields["start_from"] = {"model": name, "version": start_from}
    for part, said in (("model", {"hidden_units": units}), ("training", training)):
        if given := _given(**said):
            fields[part] = {**fields.get(part, {}), **given}
    checked(fields)
    return fields


def checked(fields: dict[str, Any]) -> "JobSpec":
    """Makes a spec of its fields, or says which of them is wrong.

    Raises:
        CommandError: One of them is.
    """
    from pydantic import ValidationError

    from service.shared.validation import describe_validation_error
    from tfbbb.training.spec import JobSpec

    try:
        return JobSpec.model_validate(fields)
    except ValidationError as error:
        raise CommandError(describe_validation_error(error.errors()[0])) from None


def features_of(
    names: Sequence[str], spec: "JobSpec", ignored: Sequence[str]
) -> list[str]:
    """Gives the columns to predict from.

    Args:
        names: The columns of the table.
        spec: What is to be trained on it.
        ignored: Columns to leave out.

    Raises:
        CommandError: One of those is not there, or none of the others.
    """
    from tfbbb.data.column_names import listed, not_found

    for name in ignored:
        if name not in names:
            raise CommandError(not_found(name, names, role="ignored"))
    left_out = {spec.target, spec.training.validation.column, *ignored}
    features = [name for name in spec.features or names if name not in left_out]
    if not features:
        raise CommandError(
            f"No column is left to predict {spec.target!r} from; the table's columns "
            f"are {listed(names)}."
        )
    return features


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        fields = json.loads(path.read_text())
    except ValueError as error:
        raise CommandError(f"{path} is not JSON: {error}.") from None
    if not isinstance(fields, dict):
        raise CommandError(f"{path} must hold a JSON object.")
    return fields
