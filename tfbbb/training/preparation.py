"""Splits a table into training and held-out rows, and reads them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tfbbb.data import Schema, TableError
from tfbbb.data.column_source import ColumnSource
from tfbbb.data.memory_rows import BatchSource, MemoryRows
from tfbbb.data.row_layout import RowLayout
from tfbbb.data.scan import TableScan
from tfbbb.data.stored_rows import BYTES_PER_GROUP, StoredRows
from tfbbb.data.stored_table import StoredTable
from tfbbb.data.values import first_row, without_views
from tfbbb.training.network import make_likelihood
from tfbbb.training.plan import cross_fitting_repeats
from tfbbb.training.spec import JobSpec
from tfbbb.training.split import Split, split_rows


@dataclass(frozen=True)
class Prepared:
    """The rows of a table, ready for training.

    Attributes:
        schema: The schema, inferred from the training rows.
        rows: The training rows.
        held_out: Inputs and targets of the held-out rows.
        held_out_rows: Indices of the held-out rows in the table; empty if members leave
            out folds of the training rows instead.
        weights: The weight of each training row, float32 [rows]; None for 1.
        held_out_weights: The weight of each held-out row; None for 1.
    """

    schema: Schema
    rows: BatchSource
    held_out: tuple[Any, np.ndarray]
    held_out_rows: np.ndarray
    weights: np.ndarray | None = None
    held_out_weights: np.ndarray | None = None


def prepare(
    source: pa.Table | TableScan,
    spec: JobSpec,
    schema: Schema | None = None,
    directory: Path | None = None,
    row_weights: np.ndarray | None = None,
) -> Prepared:
    """Splits a table and reads its rows.

    Args:
        source: Features and target, in memory or in a file.
        spec: The target, the features and the validation.
        schema: The schema of the parent version. By default the schema is inferred;
            means and categories come from the training rows alone.
        directory: Directory for the rows of a file, so that memory need not hold all of
            them; None for memory.
        row_weights: The weight of each row, float32 [rows]; None for 1. Weighted rows
            stay in memory.

    Raises:
        TableError: The table does not fit the spec or the schema.
    """
    if schema is not None and isinstance(source, TableScan):
        source = _read_text_features(source, schema)
    if row_weights is not None:
        directory = None
    table = _open(source, directory)
    if row_weights is not None and len(row_weights) != table.num_rows:
        raise ValueError(
            f"Every row of the table needs one weight. Received: {len(row_weights)} "
            f"weights for {table.num_rows} rows"
        )
    if schema is not None:
        _check_columns(table, schema)
    whole = schema or _infer(table, spec)
    _check_targets(table, whole, spec)
    # A training with a parent version goes on with all of its members.
    cross_fits = (
        schema is None
        and cross_fitting_repeats(spec, table.num_rows) > 0
        and 4 * RowLayout(whole).width * table.num_rows <= BYTES_PER_GROUP
    )
    rows = split_rows(table, whole, spec, cross_fits=cross_fits)
    schema = schema or _infer(table, spec, rows.training)
    held_out = table.take(rows.held_out)
    return Prepared(
        schema=schema,
        rows=_training_rows(table, RowLayout(schema), rows, directory),
        held_out=(schema.inputs(held_out), schema.targets(held_out)),
        held_out_rows=rows.held_out,
        weights=None if row_weights is None else row_weights[np.sort(rows.training)],
        held_out_weights=None if row_weights is None else row_weights[rows.held_out],
    )


def _check_columns(table: ColumnSource, schema: Schema) -> None:
    """Raises `TableError` with its row for a value that does not fit the schema.

    Later checks see only a part of the table, and would count rows from its start.
    """
    schema.targets(table)
    for column in schema.features:
        column.values(table)


def _check_targets(table: ColumnSource, schema: Schema, spec: JobSpec) -> None:
    """Raises `TableError` for a target outside the support of the likelihood.

    Otherwise such a target in a held-out row would fail only after training.
    """
    likelihood = make_likelihood(spec.model.likelihood, schema)
    if likelihood.support is None:
        return
    targets = schema.targets(table)[:, 0].astype(np.float64)
    other = ~likelihood.support.contains(targets)
    if other.any():
        row = first_row(other)
        raise TableError(
            f"The target {schema.target.name!r} has the value {targets[row - 1]:g} in "
            f"row {row}, but targets of {type(likelihood).__name__} must be "
            f"{likelihood.support.description}; use another likelihood or other "
            "units, or drop such rows."
        )


def _read_text_features(scan: TableScan, schema: Schema) -> TableScan:
    """Returns the scan with the text features of a schema read as text, e.g. 007."""
    texts = (*scan.text_columns, *schema.text_features)
    return TableScan(scan.path, format=scan.format, text_columns=texts)


def _open(
    source: pa.Table | TableScan, directory: Path | None
) -> pa.Table | StoredTable:
    if not isinstance(source, TableScan):
        return without_views(source)
    if directory is None:
        return pa.Table.from_batches(source.batches(), source.schema)
    return StoredTable.from_scan(source, directory)


def _training_rows(
    table: pa.Table | StoredTable,
    layout: RowLayout,
    rows: Split,
    directory: Path | None,
) -> BatchSource:
    training = np.zeros(table.num_rows, dtype=bool)
    training[rows.training] = True
    parts = _encoded(table, layout, training)
    num_bytes = 4 * layout.width * len(rows.training)
    if directory is None or num_bytes <= BYTES_PER_GROUP:
        return MemoryRows(layout, np.concatenate(list(parts)))
    return StoredRows.write(directory / "rows", layout, parts)


def _encoded(
    table: pa.Table | StoredTable, layout: RowLayout, chosen: np.ndarray
) -> Iterator[np.ndarray]:
    """Yields the encoded chosen rows of a table, in order, part by part."""
    first = 0
    for part in table.tables() if isinstance(table, StoredTable) else [table]:
        chosen_here = chosen[first : first + part.num_rows]
        first += part.num_rows
        yield layout.encode(part.filter(chosen_here))


def _infer(
    table: pa.Table | StoredTable,
    spec: JobSpec,
    training_rows: np.ndarray | None = None,
) -> Schema:
    features = spec.features
    held_out = spec.training.validation.column
    if features is None and held_out is not None:
        features = tuple(
            name for name in table.column_names if name not in (spec.target, held_out)
        )
    likelihood = spec.model.likelihood
    return Schema.infer(
        table,
        spec.target,
        task=spec.task or (likelihood.task if likelihood else None),
        features=features,
        text_columns=spec.text_columns,
        training_rows=training_rows,
    )
