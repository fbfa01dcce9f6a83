"""The fields of a job: their options on a command line, and a job from these."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from tfbbb.base.suggestions import field_paths
from tfbbb.base.types import JsonObject
from tfbbb.base.validation_errors import describe_rule, describe_validation_error
from tfbbb.cli.errors import CommandError
from tfbbb.tables.column_names import describe_missing_columns, list_names
from tfbbb.training.spec import JobSpec, Version
from tfbbb.training.spec.families import Option, SpecPart


def _parse_units(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise typer.BadParameter(
            f"{text!r} is not a list of positive whole numbers such as 50,50."
        )
    return [int(part) for part in parts]


def parse_columns(given: Sequence[str]) -> dict[str, str]:
    """Returns what columns are, by name, of texts `COLUMN=KIND`."""
    columns = {}
    for text in given:
        name, _, kind = text.rpartition("=")
        if not (name and kind):
            raise typer.BadParameter(
                f"{text!r} is not a column and its kind, such as price=number."
            )
        columns[name.strip()] = kind.strip()
    return columns


@dataclass(frozen=True)
class _Form:
    """How a command line writes the values of a field."""

    type: Any
    metavar: str | None = None
    more: str = ""
    parse: Callable[[Any], object] = lambda given: given


# By the type of the field's values, but for numbers and choices.
_FORMS = {
    str: _Form(str, "COLUMN"),
    tuple[str, ...]: _Form(list[str], "COLUMN", " May be repeated."),
    tuple[int, ...]: _Form(str, "UNITS,...", " For example 50,50.", _parse_units),
    Mapping[str, str]: _Form(
        list[str],
        "COLUMN=KIND",
        " For example price=number:percent, when=date:day-first or size=ordered:S,M,L. "
        "May be repeated.",
        parse_columns,
    ),
}


@dataclass(frozen=True)
class JobOption:
    """An option for a field of a job."""

    name: str
    path: tuple[str, ...]
    field: FieldInfo
    form: _Form
    help: str

    def parameter(self) -> Parameter:
        """Returns a parameter of a command, of which Typer makes the option."""
        default = self.field.default
        option = typer.Option(
            _flag(self.name),
            metavar=self.form.metavar,
            help=self.help + self.form.more,
            min=next((b.ge for b in self.field.metadata if hasattr(b, "ge")), None),
            callback=self._check,
            show_default=str(default) if isinstance(default, int | str) else False,
        )
        annotated: Any = Annotated
        return Parameter(
            self.name,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=annotated[self.form.type | None, option],
        )

    def _check(self, given: Any) -> Any:
        if given is not None:
            self.form.parse(given)
        return given


def job_options(
    part: type[SpecPart] = JobSpec, path: tuple[str, ...] = ()
) -> Iterator[JobOption]:
    """Yields the options of a part of a job and of the parts in it."""
    types = get_type_hints(part)
    names = {
        name: mark.name or name
        for name, field in part.model_fields.items()
        for mark in field.metadata
        if isinstance(mark, Option)
    }

    def as_option(quoted: re.Match[str]) -> str:
        return _flag(names[quoted[1]]) if quoted[1] in names else quoted[0]

    for name, field in part.model_fields.items():
        values = types[name]
        if NoneType in get_args(values):
            values = get_args(values)[0]
        if name in names:
            help = re.sub(r"`(\w+)`", as_option, field.description or "")
            form = _form(values, field, names[name])
            if values is Version:
                # The model is that of the command.
                field = Version.model_fields["version"]
                form = _Form(int, "VERSION", parse=_validate_by(field))
            yield JobOption(names[name], (*path, name), field, form, help)
        elif isinstance(values, type) and issubclass(values, SpecPart):
            yield from job_options(values, (*path, name))


def _form(values: Any, field: FieldInfo, name: str) -> _Form:
    """Returns how a command line writes values of a type."""
    if get_origin(values) is Literal:
        choices = f" Choices: {', '.join(get_args(values))}."
        return _Form(values, name.upper(), choices)
    return _FORMS.get(values) or _Form(values, parse=_validate_by(field))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _validate_by(field: FieldInfo) -> Callable[[object], object]:
    """Returns a function that checks values by the bounds of a field."""
    adapter: TypeAdapter[object] = TypeAdapter(field.rebuild_annotation())

    def validate(value: object) -> object:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            rule = describe_rule(error.errors()[0])
            raise typer.BadParameter(f"{value} {rule}.") from None

    return validate


def job_fields(
    target: Sequence[str],
    spec: Path | None,
    options: Mapping[str, object],
    *,
    name: str,
) -> JsonObject:
    """Returns the fields of a job that a file sets, or an option in its place."""
    fields = {
        **_read_json(spec),
        "target": target[0] if len(target) == 1 else list(target),
    }
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


def validate_fields(fields: JsonObject) -> JobSpec:
    """Builds a `JobSpec` from its fields."""
    try:
        return JobSpec.model_validate(fields)
    except ValidationError as error:
        first, known = error.errors()[0], field_paths(JobSpec)
        raise CommandError(describe_validation_error(first, known=known)) from None


def leave_out(
    fields: JsonObject, names: Sequence[str], ignored: Sequence[str]
) -> JsonObject:
    """Returns the fields of a job without the ignored columns."""
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
            f"No column is left to predict {list_names(spec.targets)} from; the "
            f"table's columns are {list_names(names)}."
        )
    if spec.features is not None:
        return {**fields, "features": features}
    named = [name for name in ignored if name not in spec.targets]
    columns = {**spec.columns, **dict.fromkeys(named, "ignore")}
    return {**fields, "columns": columns} if columns else fields


def _override(fields: JsonObject, given: JsonObject) -> JsonObject:
    """Returns fields and the given ones, which replace the same fields."""
    merged = dict(fields)
    for name, value in given.items():
        known = fields.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            value = _override(known, value)
        merged[name] = value
    return merged


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
