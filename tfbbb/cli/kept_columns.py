"""Columns of the given table that stand before its predictions."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute

from tfbbb.tables.plain_values import typed_table


def with_kept_columns(
    predictions: pa.Table, table: pa.Table, used: Collection[str | None], *, keep: bool
) -> pa.Table:
    """Puts columns of the given table before the predictions of its rows."""
    kept = {}
    others = [name for name in table.column_names if keep or name not in used]
    table = typed_table(table.select(others))
    for name in may_be_kept(table.schema, used, keep=keep):
        if not keep and not _tells_rows_apart(table[name]):
            continue
        new = name
        while new in predictions.column_names or new in kept:
            new += "_given"
        kept[new] = table[name]
    answers = dict(zip(predictions.column_names, predictions.columns, strict=True))
    return pa.table({**kept, **answers})


def may_be_kept(
    schema: pa.Schema, used: Collection[str | None], *, keep: bool
) -> list[str]:
    """Returns the names of the columns that are kept if their values allow."""
    return [
        field.name
        for field in schema
        if keep or (field.name not in used and _is_text_or_integer(field.type))
    ]


def _is_text_or_integer(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(text or pa.types.is_integer(kind))


def _tells_rows_apart(column: pa.ChunkedArray) -> bool:
    return not column.null_count and bool(
        pa.compute.count_distinct(column).as_py() == len(column)
    )
