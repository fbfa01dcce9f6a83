"""Any table is understood, or refused by a named error; never by a traceback."""

import datetime
import json

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tfbbb.tables import Schema, TableError

ROWS = 24
CELLS = {
    "numbers": st.from_regex(r"-?\d{1,4}([.,]\d{1,2})?", fullmatch=True),
    "money": st.from_regex(r"(\$|€ ?)\d{1,3}(,\d{3})?(\.\d\d)?", fullmatch=True),
    "dates": st.from_regex(r"[0-3]?\d[./-][01]?\d[./-](20)?\d\d", fullmatch=True),
    "times": st.from_regex(r"\d{1,2}:[0-7]\d(:\d\d)?( [ap]m)?", fullmatch=True),
    "marks": st.sampled_from(["", "?", "NA", "-", "null", None, " "]),
    "words": st.sampled_from(["yes", "no", "red", "T", "F", "low", "High", "12A"]),
    "anything": st.text(max_size=8),
}
LONGEST = datetime.timedelta(days=10_000)
TYPED = (
    st.floats(width=32) | st.none(),
    st.integers(-(2**40), 2**40) | st.none(),
    st.booleans() | st.none(),
    st.datetimes() | st.none(),
    st.timedeltas(-LONGEST, LONGEST) | st.none(),
)


def text_column():
    kinds = st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=2)
    return kinds.flatmap(
        lambda names: st.lists(
            st.one_of(*(CELLS[name] for name in names)), min_size=ROWS, max_size=ROWS
        )
    )


COLUMN = text_column() | st.one_of(
    *(st.lists(cells, min_size=ROWS, max_size=ROWS) for cells in TYPED)
)
OVERRIDES = st.sampled_from(
    [
        "number",
        "number:decimal-comma",
        "boolean",
        "date",
        "date:day-first",
        "date:unix",
        "duration",
        "ordered:low,high",
        "text",
        "hashed:8",
        "ignore",
        "nothing",
    ]
)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(COLUMN, min_size=2, max_size=4),
    st.dictionaries(st.sampled_from(["x0", "x1", "y"]), OVERRIDES, max_size=2),
)
def test_any_table_is_understood_or_refused_by_name(columns, overrides):
    names = [f"x{place}" for place in range(len(columns) - 1)] + ["y"]
    table = pa.table(
        {
            name: pa.array(values, from_pandas=True)
            for name, values in zip(names, columns, strict=True)
        }
    )
    try:
        schema = Schema.infer(table, "y", columns=overrides)
    except TableError:
        return
    stored = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert stored == schema
    # One row alone has the values that it has among all.
    expected = [column.values(table) for column in schema.features]
    assert len(schema.warnings(table)) == ROWS
    for row in (0, ROWS - 1):
        alone = [column.values(table.slice(row, 1)) for column in stored.features]
        for values, one in zip(expected, alone, strict=True):
            np.testing.assert_array_equal(one, values[row : row + 1])
