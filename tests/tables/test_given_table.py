import datetime
import decimal
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfbbb.tables import Schema, TableError
from tfbbb.tables.cells import Cells
from tfbbb.tables.given_table import as_source

COLUMNS = {"x": [1.5, None, 3.0], "word": ["a", "b", None]}
TABLE = pa.table(COLUMNS)


class Polars:
    """A table with the Arrow stream interface alone, as frames of polars have."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "given",
    [
        TABLE,
        TABLE.to_batches()[0],
        Polars(),
        pd.DataFrame(COLUMNS, index=[7, 8, 9]),
        pd.DataFrame(COLUMNS).astype({"word": "category"}),
        pa.table({"x": TABLE["x"], "word": TABLE["word"].dictionary_encode()}),
        COLUMNS,
        {"x": np.array([[1.5], [np.nan], [3.0]]), "word": pd.Series(COLUMNS["word"])},
        {"x": TABLE["x"], "word": np.array(["a", "b", np.nan], dtype=object)},
        [{"x": 1.5, "word": "a"}, {"word": "b"}, {"x": 3.0, "word": None}],
    ],
)
def test_every_kind_of_table_is_converted_alike(given):
    table = as_source(given)
    assert table.column_names == ["x", "word"]
    for name, values in COLUMNS.items():
        assert table.column(name).to_pylist() == values


@pytest.mark.parametrize(
    ("given", "received"),
    [
        (np.ones((3, 2)), "ndarray"),
        ([[1.0, 2.0]], "list"),
        (pd.Series([1.0]), "Series"),
        ("table.csv", "str"),
    ],
)
def test_a_value_that_is_not_a_table_is_refused(given, received):
    with pytest.raises(TableError, match=rf"A table must be .*Received: {received}$"):
        as_source(given)


@pytest.mark.parametrize(
    "given",
    [
        {"x": [1.0], "y": [1.0, 2.0]},
        {"x": 1.0},
        pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]),
    ],
)
def test_invalid_columns_are_refused(given):
    with pytest.raises(TableError, match="The table cannot be read"):
        as_source(given)


ROWS = 12
NUMBERS = np.arange(ROWS) % 3
SIZES = pd.Categorical(
    np.array(["S", "L", "M"])[NUMBERS], categories=["S", "M", "L"], ordered=True
)
PERIODS = pd.period_range("2020", periods=ROWS, freq="M")


def described(values):
    """Returns what a column of a frame is taken for, and its distinct inputs."""
    frame = pd.DataFrame({"y": np.sqrt(np.arange(ROWS))})
    frame["x"] = values
    (column,) = Schema.infer(frame, "y", features=["x"]).features
    return column.meaning, list(dict.fromkeys(column.values(as_source(frame)).tolist()))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Categorical(NUMBERS), ("text", ["0", "1", "2"])),
        (pd.Categorical(NUMBERS / 2), ("text", ["0", "0.5", "1"])),
        (pd.Categorical([1, "a", 2.0] * 4), ("text", ["1", "a", "2"])),
        (SIZES, ("ordered", [0, 2, 1])),
        (pd.cut(NUMBERS, [-1, 0, 1, 5]), ("ordered", [0, 1, 2])),
        (
            pd.arrays.IntervalArray.from_tuples([(3, 4), (1, 2)] * 6),
            ("ordered", [1, 0]),
        ),
        ([1, "a"] * 6, ("text", ["1", "a"])),
        ([1.5, decimal.Decimal(2), 2**70] * 4, ("number", [1.5, 2.0, 2.0**70])),
        (pd.arrays.SparseArray(NUMBERS), ("number", [0, 1, 2])),
        ([datetime.time(0, 1), datetime.time(1)] * 6, ("duration", [60, 3600])),
        (PERIODS, ("date", [int(p.start_time.timestamp()) for p in PERIODS])),
        ([datetime.date(1970, 1, 2), "1971-01-01"] * 6, ("date", [86400, 31536000])),
        (pd.Series([1, pd.NA] * 6, dtype="Int64").fillna(3), ("number", [1, 3])),
        (pd.Series(["a", "b"] * 6, dtype="string[pyarrow]"), ("text", ["a", "b"])),
    ],
)
def test_columns_of_pandas_keep_their_meaning(values, expected):
    assert described(values) == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            np.arange(ROWS) * 1j,
            "Column 'x' holds complex numbers, which a model cannot read; turn them "
            "into columns of real numbers, or leave the column out.",
        ),
        (
            [[1], "a"] * 6,
            "Column 'x' has a value of type list in row 1, but must hold numbers, "
            "booleans, dates or texts; convert the values, or leave the column out.",
        ),
        (
            [b"a", b"b"] * 6,
            "Column 'x' holds values of type binary, which a model cannot read; "
            "convert them to numbers or text, or leave the column out.",
        ),
    ],
)
def test_other_objects_are_refused_in_a_sentence(values, message):
    with pytest.raises(TableError) as error:
        described(values)
    assert str(error.value) == message


def test_categories_of_the_fit_read_plain_columns():
    frame = pd.DataFrame({"y": np.sqrt(np.arange(ROWS)), "x": pd.Categorical(NUMBERS)})
    schema = Schema.infer(frame, "y")
    expected = schema.inputs(frame)["x"]
    for other in (NUMBERS, NUMBERS.astype(float), NUMBERS.astype(str)):
        found = schema.inputs(frame.assign(x=other))["x"]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([2, 1, 2]), ["2", "1", "2"]),
        (pa.array([True, None, False]), ["true", None, "false"]),
        (pa.chunked_array([["a"], [], ["b", "a"]]), ["a", "b", "a"]),
    ],
)
def test_dictionaries_are_categories_of_texts(values, expected):
    table = as_source(pa.table({"x": values.dictionary_encode()}))
    assert as_source(table).column("x").to_pylist() == expected
    assert pa.types.is_dictionary(table.column("x").type)
    assert Cells.read(table, "x").is_category


def test_a_category_is_a_target_of_classes():
    frame = pd.DataFrame({"x": np.sqrt(np.arange(ROWS)), "y": pd.Categorical(NUMBERS)})
    schema = Schema.infer(frame, "y")
    assert (schema.task, schema.classes) == ("classification", ("0", "1", "2"))
    assert Schema.infer(frame, "y", task="regression").task == "regression"


NUM_ROWS = 24
CELLS = (
    # Numbers, money, dates and times of day.
    st.from_regex(
        r"[-$]?\d{1,3}([.,/: -]\d{1,3}){0,3}( ?(am|PM|kg|€))?", fullmatch=True
    ),
    st.sampled_from(["", "?", "NA", "-", "null", None, " "]),
    st.sampled_from(["yes", "no", "red", "T", "F", "low", "High", "12A"]),
    st.text(max_size=8),
)
LONGEST = datetime.timedelta(days=10_000)
TYPED = (
    st.floats(width=32) | st.none(),
    st.integers(-(2**40), 2**40) | st.none(),
    st.booleans() | st.none(),
    st.datetimes() | st.none(),
    st.timedeltas(-LONGEST, LONGEST) | st.none(),
)


def columns_of(*cells):
    return st.lists(st.one_of(*cells), min_size=NUM_ROWS, max_size=NUM_ROWS)


COLUMN = st.one_of(*map(columns_of, TYPED), *map(columns_of, CELLS), columns_of(*CELLS))
OVERRIDES = st.sampled_from(
    [
        *("number", "number:decimal-comma", "boolean", "date", "date:day-first"),
        *("date:unix", "duration", "ordered:low,high", "text", "hashed:8", "ignore"),
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
    assert len(schema.warnings(table)) == NUM_ROWS
    for row in (0, NUM_ROWS - 1):
        alone = [column.values(table.slice(row, 1)) for column in stored.features]
        for values, one in zip(expected, alone, strict=True):
            np.testing.assert_array_equal(one, values[row : row + 1])
