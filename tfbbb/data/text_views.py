"""Texts as Polars stores them, of which Arrow can't yet take some rows."""

from typing import TypeVar

import pyarrow as pa

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def without_views(rows: Rows) -> Rows:
    """Returns rows whose texts are no views, but stored one after the other.

    Example:
    >>> views = pa.table({"a": pa.array(["x", None]).cast(pa.string_view())})
    >>> without_views(views).schema.types
    [DataType(string)]
    """
    schema = rows.schema
    for place, field in enumerate(schema):
        if pa.types.is_string_view(field.type):
            schema = schema.set(place, field.with_type(pa.string()))
    return rows if schema is rows.schema else rows.cast(schema)
