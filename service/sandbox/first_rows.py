"""The first rows of a table, which show what a job takes each column for."""

import pyarrow as pa

from service.shared.json_types import JsonObject
from tfbbb.tables.schema import infer_features

_MOST_ROWS, _FEWEST_ROWS = 20_000, 500
_MOST_CELLS = 1_000_000


class FirstRows:
    """Keeps the first rows of a table, at most a million cells or 500 rows."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._num_rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Keeps the rows of a batch that are still needed."""
        most = _MOST_CELLS // max(batch.num_columns, 1)
        left = min(max(most, _FEWEST_ROWS), _MOST_ROWS) - self._num_rows
        if left <= 0:
            return
        if batch.num_rows > left:
            # A copy: a slice would hold the memory of the whole batch.
            batch = batch.take(pa.array(range(left)))
        self._batches.append(batch)
        self._num_rows += batch.num_rows

    def infer_kinds(self) -> dict[str, JsonObject]:
        """Returns what a job takes each column for, as `tfbbb inspect` does."""
        table = pa.Table.from_batches(self._batches)
        features, left_out = infer_features(
            table, table.column_names, {}, refuses=False
        )
        found: dict[str, JsonObject] = {
            column.name: {
                "role": "feature",
                "kind": column.meaning,
                "remarks": list(column.remarks),
            }
            for column in features
        }
        for name, reason in left_out:
            found[name] = {"role": "left out", "kind": None, "remarks": [reason]}
        return found
