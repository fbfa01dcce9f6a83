"""The fields of a job, from the options of a command."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfbbb.base.types import JsonObject
from tfbbb.cli.errors import CommandError

if TYPE_CHECKING:
    from tfbbb.training.spec import JobSpec

# By the name of a part of a job, the fields of which it has one or the other.
_ALTERNATIVES = {"training": {"epochs", "steps"}, "model": {"hidden_units", "layers"}}


def job_fields(
    target: str, spec: Path | None, options: Mapping[str, object], *, name: str
) -> JsonObject:
    """Returns the fields of a `JobSpec` that a file or options set.

    An option overrides the same field of the file, and a field that contradicts it:
    `--epochs` the `steps` of the file.
    """
    from tfbbb.cli.job_options import job_options

    fields = {**_read_json(spec), "target": target}
    validate_fields(fields)
    given: JsonObject = {}
    for option in job_options():
        value = options.get(option.name)
        if value is not None and value != []:
            part = given
            for place in option.path[:-1]:
                part = part.setdefault(place, {})
            part[option.path[-1]] = option.form.parse(value)
    if "start_from" in given:
        given["start_from"] = {"model": name, "version": given["start_from"]}
    fields = _override(fields, given)
    validate_fields(fields)
    return fields


def validate_fields(fields: JsonObject) -> "JobSpec":
    """Builds a `JobSpec` from its fields."""
    from pydantic import ValidationError

    from tfbbb.base.suggestions import field_paths
    from tfbbb.base.validation_errors import describe_validation_error
    from tfbbb.training.spec import JobSpec

    try:
        return JobSpec.model_validate(fields)
    except ValidationError as error:
        first, known = error.errors()[0], field_paths(JobSpec)
        raise CommandError(describe_validation_error(first, known=known)) from None


def leave_out(
    fields: JsonObject, names: Sequence[str], ignored: Sequence[str]
) -> JsonObject:
    """Returns the fields of a job without the ignored columns."""
    from tfbbb.tables.column_names import describe_missing_columns, list_names

    if missing := describe_missing_columns(ignored, names, role="ignored"):
        raise CommandError(missing)
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


def _override(fields: JsonObject, given: JsonObject) -> JsonObject:
    """Returns fields and the given ones, which replace the same fields."""
    merged = dict(fields)
    for name, value in given.items():
        known = fields.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            value = _override(_without_exclusive(name, known, value), value)
        merged[name] = value
    return merged


def _without_exclusive(part: str, of_file: JsonObject, given: JsonObject) -> JsonObject:
    """Returns the fields of a part of a job that go with the given ones.

    In `validation`, a column replaces any other column, and all but `column` go with a
    fraction.
    """
    alternatives = _ALTERNATIVES.get(part, set())
    left_out = alternatives if alternatives & given.keys() else set()
    if part == "validation":
        kept = set() if "column" in given else {"fraction"}
        if given.keys() == {"fraction"}:
            kept = {"time", "group"}
        left_out = of_file.keys() - kept
    return {name: value for name, value in of_file.items() if name not in left_out}


def _read_json(path: Path | None) -> JsonObject:
    if path is None:
        return {}
    try:
        fields = json.loads(path.read_text())
    except ValueError as error:
        raise CommandError(f"{path} is not JSON: {error}.") from None
    if not isinstance(fields, dict):
        raise CommandError(f"{path} must hold a JSON object.")
    return fields
