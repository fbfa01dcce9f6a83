"""The rows of a table that have a target, and the schema of a spec."""

from dataclasses import replace

from tfbbb.base.task import Task
from tfbbb.tables.cells import Cells
from tfbbb.tables.column_names import (
    ColumnSource,
    check_column_names,
    check_columns_exist,
)
from tfbbb.tables.override import Override
from tfbbb.tables.schema import Schema
from tfbbb.tables.table_error import TableError
from tfbbb.tables.target import RowsWithTarget, missing_values, rows_with_target
from tfbbb.tables.target_choice import TargetChoice
from tfbbb.tables.values import are_numbers
from tfbbb.training.spec import JobSpec


def infer_schema(
    table: ColumnSource, spec: JobSpec, choice: TargetChoice | None = None
) -> Schema:
    """Infers the schema of a table in which every row has a target."""
    columns = dict(spec.columns)
    validation = spec.training.validation
    decided_by = validation.column or validation.group
    if spec.features is None:
        if decided_by is not None:
            columns[decided_by] = "ignore"
        elif validation.time is not None and _is_of_numbers(table, validation.time):
            # Numbers of the rows would be left out.
            columns.setdefault(validation.time, "number")
    schema = Schema.infer(
        table,
        spec.target,
        task=_task_of(spec),
        features=spec.features,
        columns=columns,
        held_out_at_random=validation.decided_by is None,
        target_choice=choice,
    )
    reasons = dict(schema.left_out)
    if decided_by in reasons:
        reasons[decided_by] = "It decides which rows validation leaves out."
    return replace(schema, left_out=tuple(reasons.items()))


def _is_of_numbers(table: ColumnSource, name: str) -> bool:
    return name in table.column_names and are_numbers(Cells.read(table, name).type)


def find_rows_with_target(
    table: ColumnSource, spec: JobSpec, schema: Schema | None = None
) -> RowsWithTarget:
    """Finds which rows of a table have a target."""
    name = spec.target
    check_column_names(table.column_names)
    check_columns_exist(table, [name], role="target")
    if schema is not None:
        target = schema.target
        found = RowsWithTarget(
            ~missing_values(table, name, target.notation),
            TargetChoice(schema.task, target.notation, target.remarks),
        )
    else:
        text = spec.columns.get(name)
        override = None if text is None else Override.parse(text)
        found = rows_with_target(table, name, _task_of(spec), override)
    if len(found.known) and not found.known.any():
        raise TableError(f"The target {name!r} has no values; name another column.")
    return found


def _task_of(spec: JobSpec) -> Task | None:
    likelihood = spec.model.likelihood
    return spec.task or (likelihood.family.task if likelihood else None)
