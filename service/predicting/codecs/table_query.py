"""Requests whose body is a table, with the parameters in the URL."""

from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa

from service.predicting.query import Query, check_signature, read_text_parameters
from service.shared.errors import InvalidRequest
from service.shared.json_types import JsonList
from tfbbb.base.texts import abbreviate


def table_query(table: pa.Table, options: Mapping[str, object]) -> Query:
    """Returns the query of a table."""
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(f"The table has the column {abbreviate(twice)} twice.")
    given = dict(options)
    check_signature(given.pop("signature_name", None))
    targets = None
    if (listed := given.pop("targets", None)) is not None:
        targets = _read_targets(table, str(listed).split(","))
    return Query(None, table, read_text_parameters(given), targets, None)


def _read_targets(table: pa.Table, names: list[str]) -> JsonList:
    """Returns one value per row, a list of values if there are several columns."""
    for name in names:
        if name not in table.column_names:
            raise InvalidRequest(
                "`targets` must name the columns that hold the targets. "
                f"Received: {abbreviate(name)}, and a table without that column"
            )
    columns = [
        [float(x) if isinstance(x, Decimal) else x for x in table[name].to_pylist()]
        for name in names
    ]
    if len(columns) == 1:
        return columns[0]
    return [list(row) for row in zip(*columns, strict=True)]
