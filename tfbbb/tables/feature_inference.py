"""Infers the features of a table, and which columns are left out."""

from collections.abc import Mapping, Sequence

import numpy as np

from tfbbb.tables.column import Column, infer_column
from tfbbb.tables.column_names import describe_missing_columns
from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.override import Override, OverrideError
from tfbbb.tables.relations import Relations
from tfbbb.tables.table_error import ColumnError, TableError


def parse_overrides(
    columns: Mapping[str, str], names: Sequence[str]
) -> dict[str, Override]:
    """Parses overrides by column."""
    if missing := describe_missing_columns(columns, names, role="overruled"):
        raise TableError(missing)
    overrides = {}
    for name, text in columns.items():
        try:
            overrides[name] = Override.parse(text)
        except OverrideError as error:
            raise TableError(f"Column {name!r}: {error}") from None
    return overrides


def infer_features(
    table: ColumnSource,
    names: Sequence[str],
    overrides: Mapping[str, Override],
    rows: np.ndarray | None,
    relations: Relations,
    *,
    required: bool = False,
    refuses: bool = True,
    held_out_at_random: bool = True,
) -> tuple[tuple[Column, ...], tuple[tuple[str, str], ...]]:
    """Infers the features of a table, and which columns are left out and why."""
    features: list[Column] = []
    spare: list[Column] = []
    left_out: dict[str, str] = {}
    first_error: TableError | None = None
    refused: dict[str, TableError] = {}
    for name in names:
        override = overrides.get(name)
        if override is not None and override.kind == "ignore":
            left_out[name] = "As asked."
            continue
        keep = required or override is not None
        try:
            column, parsed = infer_column(table, name, rows, override, keep)
        except TableError as error:
            unusable = isinstance(error, ColumnError) and error.unusable
            if refuses and (keep or not unusable):
                refused[name] = error
            first_error = first_error or error
            left_out[name] = str(error)
            continue
        found = relations.examine(parsed)
        if found.reason is not None:
            column = column.with_remarks(found.reason)
            if not keep:
                left_out[name] = f"{found.reason} {found.advice}".rstrip()
                spare.append(column)
                continue
        column = column.with_remarks(*found.remarks)
        features.append(column.with_warnings(*found.warnings))
    if refused:
        raise _as_one(refused)
    if not features:
        # Better a poor feature than none.
        features, spare = spare, []
        for column in features:
            del left_out[column.name]
    warnings = relations.find_warnings(held_out_at_random=held_out_at_random)
    features = [
        column.with_warnings(*warnings.get(column.name, ())) for column in features
    ]
    if not features and refuses:
        if first_error is not None:
            raise first_error
        raise TableError("No column is left to predict from.")
    return tuple(features), tuple(left_out.items())


def _as_one(errors: Mapping[str, TableError]) -> TableError:
    """Returns one error with the messages on all columns."""
    if len(errors) == 1:
        return next(iter(errors.values()))
    first, *others = errors
    return ColumnError(" ".join(map(str, errors.values())), first, others=others)
