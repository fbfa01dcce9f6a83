"""Checks a target and a recalibration against the column of the target.

What depends on the cells, such as the support of a likelihood, training says itself.
"""

from collections.abc import Mapping
from typing import Any

from tfbbb.base.task import Task
from tfbbb.training.spec.families import RecalibrationPart
from tfbbb.training.spec.part import SpecError


def check_recalibration(recalibration: RecalibrationPart, task: Task) -> None:
    """Raises `SpecError` unless a recalibration suits a task."""
    suited = recalibration.family and recalibration.family.task
    if suited not in (None, task):
        raise SpecError(
            f"The recalibration '{recalibration.name}' is for a {suited}, "
            f"but the task of the target is {task}; leave `recalibration` out.",
            "recalibration",
        )


def task_of(column: Mapping[str, Any]) -> Task | None:
    """Returns the task of a target; None of text, which may be numbers."""
    if column["type"] == "text":
        return None
    of_two = column.get("distinct") == 2
    if of_two and (column.get("min"), column.get("max")) == (0, 1):
        return "classification"
    return "regression" if column["type"] == "number" else "classification"


def check_target(column: Mapping[str, Any]) -> None:
    """Raises `SpecError` for a column that cannot be a target."""
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
