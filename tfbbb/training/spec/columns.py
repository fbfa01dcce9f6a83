"""Checks a spec against the columns of a table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfbbb.base.task import MAX_CATEGORIES, Task
from tfbbb.tables.column_names import describe_missing_columns
from tfbbb.training.spec.families import (
    DEFAULT_LIKELIHOODS,
    LikelihoodPart,
    RecalibrationPart,
)
from tfbbb.training.spec.part import SpecError
from tfbbb.training.spec.training import Validation

Columns = Mapping[str, Mapping[str, Any]]
_USABLE = ("number", "text", "boolean", "date")


def check_columns(
    columns: Sequence[Mapping[str, Any]],
    *,
    target: str,
    features: Sequence[str] | None,
    not_features: frozenset[str],
    text_columns: Sequence[str],
    overrides: Mapping[str, str],
    validation: Validation,
    task: Task | None,
    likelihood: LikelihoodPart | None,
    recalibration: RecalibrationPart,
) -> None:
    """Raises `SpecError` unless the columns of a table fit a spec."""
    by_name = {column["name"]: column for column in columns}
    _check_exist(by_name, [target], "target", role="target")
    column = by_name[target]
    task = task or (likelihood.task if likelihood is not None else None)
    overruled = target in overrides
    task = task or (None if overruled else _task_of(column))
    if not overruled:
        _check_target(column, task, likelihood)
    if task is not None:
        check_recalibration(recalibration, task)
    by = getattr(recalibration, "by", None)
    if by is not None:
        _check_exist(by_name, [by], "recalibration.by", role="group")
    _check_validation(validation, by_name)
    required = features is not None
    if features is None:
        features = [name for name in by_name if name not in not_features]
        if not features:
            raise SpecError(
                f"The table has no column other than the target {target!r}.",
                "features",
            )
    _check_exist(by_name, text_columns, "text_columns", role="text")
    _check_exist(by_name, overrides, "columns", role="overruled")
    _check_exist(by_name, features, "features", role="feature")
    # Others are left out if they turn out to be useless.
    if required:
        for name in features:
            _check_feature(by_name[name])


def _check_exist(
    columns: Columns, names: Iterable[str], field: str, *, role: str
) -> None:
    if missing := describe_missing_columns(names, list(columns), role=role):
        raise SpecError(missing, field)


def _check_feature(column: Mapping[str, Any]) -> None:
    name, kind, distinct = column["name"], column["type"], column.get("distinct")
    if kind not in _USABLE:
        raise SpecError(
            f"Column {name!r} holds values of type {kind}, which cannot be a feature; "
            "name the other columns in `features`.",
            "features",
        )
    if distinct == 0:
        raise SpecError(
            f"Column {name!r} has no values; leave the column out.", "features"
        )


def check_recalibration(recalibration: RecalibrationPart, task: Task) -> None:
    """Raises `SpecError` unless a recalibration suits a task."""
    if recalibration.task not in (None, task):
        raise SpecError(
            f"The recalibration '{recalibration.name}' is for a {recalibration.task}, "
            f"but the task of the target is {task}; leave `recalibration` out.",
            "recalibration",
        )


def _task_of(column: Mapping[str, Any]) -> Task | None:
    """Returns the task of a target; None of text, which may be numbers."""
    if column["type"] == "text":
        return None
    of_two = column.get("distinct") == 2
    if of_two and (column.get("min"), column.get("max")) == (0, 1):
        return "classification"
    return "regression" if column["type"] == "number" else "classification"


def _check_target(
    column: Mapping[str, Any], task: Task | None, likelihood: LikelihoodPart | None
) -> None:
    name, kind, distinct = column["name"], column["type"], column.get("distinct")
    if kind not in ("number", "text", "boolean"):
        raise SpecError(
            f"The target {name!r} holds values of type {kind}, but must hold numbers, "
            "text or booleans.",
            "target",
        )
    if distinct == 0:
        raise SpecError(
            f"The target {name!r} has no values; name another column.", "target"
        )
    if distinct == 1:
        raise SpecError(
            f"The target {name!r} has the same value in every row, so there is nothing "
            "to learn.",
            "target",
        )
    too_many = distinct is not None and distinct > MAX_CATEGORIES
    if task == "classification" and too_many:
        raise SpecError(
            f"The target {name!r} has too many classes; at most {MAX_CATEGORIES} are "
            "allowed.",
            "target",
        )
    if likelihood is None and task is not None:
        likelihood = DEFAULT_LIKELIHOODS[task]
    if likelihood is not None:
        _check_likelihood(likelihood, column)


def _check_likelihood(likelihood: LikelihoodPart, column: Mapping[str, Any]) -> None:
    """Raises `SpecError` for a target outside the support of the likelihood."""
    name, distinct = column["name"], column.get("distinct")
    if likelihood.binary and distinct not in (None, 2):
        raise SpecError(
            f"The likelihood '{likelihood.name}' has two classes, but the target "
            f"{name!r} has {distinct} values; use 'categorical'.",
            "model.likelihood",
        )
    if likelihood.integer_classes and column["type"] == "text":
        raise SpecError(
            f"The likelihood '{likelihood.name}' needs whole numbers as classes, but "
            f"the target {name!r} is text; number its classes.",
            "model.likelihood",
        )
    support = likelihood.support
    if support is None:
        return
    least, greatest = column.get("min"), column.get("max")
    if least is not None and least < support.least:
        wrong = f"goes down to {least:g}"
    elif greatest is not None and greatest > support.greatest:
        wrong = f"goes up to {greatest:g}"
    else:
        return
    raise SpecError(
        f"The target {name!r} {wrong}, but the targets of the likelihood "
        f"'{likelihood.name}' must be {support.description}; use another likelihood "
        "or other units.",
        "target",
    )


def _check_validation(validation: Validation, columns: Columns) -> None:
    """Raises `SpecError` unless the columns can decide which rows are held out."""
    if (name := validation.column) is not None:
        field = "training.validation.column"
        _check_exist(columns, [name], field, role="validation")
        _check_validation_column(columns[name])
    for role, name in (("time", validation.time), ("group", validation.group)):
        if name is None:
            continue
        _check_exist(columns, [name], f"training.validation.{role}", role=role)
        column = columns[name]
        if role == "time" and column["type"] == "boolean":
            raise SpecError(
                f"The time column {name!r} holds true and false; name a column of "
                "numbers, dates or times.",
                "training.validation.time",
            )
        if column.get("missing"):
            raise SpecError(
                f"The {role} column {name!r} has no value in {column['missing']} rows; "
                "fill them in, or leave these rows out.",
                f"training.validation.{role}",
            )
        if column.get("distinct") == 1:
            raise SpecError(
                f"The {role} column {name!r} has the same value in all rows, so it "
                "cannot tell rows to hold out from others.",
                f"training.validation.{role}",
            )


def _check_validation_column(column: Mapping[str, Any]) -> None:
    """Raises `SpecError` unless a column can mark the held-out rows."""
    name, kind = column["name"], column["type"]
    numbers = kind == "number" and (column.get("min"), column.get("max")) in (
        (0, 1),
        (None, None),
    )
    if kind != "boolean" and not numbers:
        raise SpecError(
            f"The validation column {name!r} must be true or 1 in the held-out rows, "
            "and false or 0 in the others.",
            "training.validation.column",
        )
    if column.get("missing"):
        raise SpecError(
            f"The validation column {name!r} must mark the held-out rows, but has no "
            f"value in {column['missing']} rows.",
            "training.validation.column",
        )
    if column.get("distinct") == 1:
        raise SpecError(
            f"The validation column {name!r} must mark the held-out rows, but has the "
            "same value in all rows.",
            "training.validation.column",
        )
