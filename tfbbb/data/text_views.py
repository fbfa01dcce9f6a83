"""Conversion of string views, as Polars writes them, to strings.

Arrow does not support `take` of string views yet.
"""

from typing import TypeVar

import pyarrow as pa

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def without_views(rows: Rows) -> Rows:
    """Converts columns of string views to strings.

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
