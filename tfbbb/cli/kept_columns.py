"""Columns of the given table that stand before its predictions."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute


def with_kept_columns(
    predictions: pa.Table, table: pa.Table, used: Collection[str | None], *, keep: bool
) -> pa.Table:
    """Puts columns of the given table before the predictions of its rows.

    Args:
        predictions: The predictions, one row per row of the table.
        table: The given table.
        used: Names of the features and of the target.
        keep: Whether to keep all columns, or only those that tell rows apart: texts
            or whole numbers that the model does not read, all of them different.

    Returns:
        The kept columns and the predictions. A kept column with the name of a
        prediction gets `_given` after its name.
    """
    kept = {}
    for name in table.column_names:
        if not keep and (name in used or not _tells_rows_apart(table[name])):
            continue
        new = name
        while new in predictions.column_names or new in kept:
            new += "_given"
        kept[new] = table[name]
    answers = dict(zip(predictions.column_names, predictions.columns, strict=True))
    return pa.table({**kept, **answers})


def _tells_rows_apart(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (text or pa.types.is_integer(kind)) or column.null_count:
        return False
    return bool(pa.compute.count_distinct(column).as_py() == len(column))
