"""Tables of a program as Arrow tables."""

from typing import Any

import pyarrow as pa


def is_table(value: Any) -> bool:
    """Whether a value is a table of pyarrow, pandas, polars or their like."""
    return hasattr(value, "__arrow_c_stream__") or _is_pandas(value)


def as_arrow(table: Any) -> pa.Table:
    """The same table as one of pyarrow; the index of a pandas frame is left out."""
    if _is_pandas(table):
        return pa.Table.from_pandas(table, preserve_index=False)
    return pa.table(table)


def _is_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"
