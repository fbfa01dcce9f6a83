from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import Column, Schema, TableError
from tfbbb.tables.column import infer_column
from tfbbb.tables.notations.notation import Texts
from tfbbb.tables.override import Override, OverrideError
from tfbbb.tables.parsed_column import ParsedTable


def inferred(values, rows=None):
    return infer_column(pa.table({"a": values}), "a", rows)[0]


def test_statistics_use_known_values_in_double_precision():
    values = 1e8 + np.random.default_rng(0).normal(scale=100, size=50)
    column = inferred([None, *values])
    assert column.missing
    np.testing.assert_allclose(column.mean, values.mean(), rtol=1e-14)
    np.testing.assert_allclose(column.scale, values.std(), rtol=1e-9)


def test_categories_come_from_training_rows_including_missing_as_empty_text():
    column = inferred(["b", None, "a", "c"], np.array([0, 1, 2]))
    assert column.categories == ("", "a", "b")
    assert column.missing


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        ([True, False, None], "numeric", [1, 0, np.nan]),
        ([1, 2, 3], "numeric", [1, 2, 3]),
        (pa.array([2**64 - 1, 0, 7], pa.uint64()), "numeric", [2.0**64, 0, 7]),
        ([1.5, float("nan"), 2.0], "numeric", [1.5, np.nan, 2]),
        ([Decimal("1.25"), None, Decimal(2)], "numeric", [1.25, np.nan, 2]),
        (pa.array([4, None, 5]).dictionary_encode(), "numeric", [4, np.nan, 5]),
        (["a", None, ""], "categorical", ["a", "", ""]),
    ],
)
def test_every_type_of_numbers_or_text_is_read(values, kind, read):
    table = pa.table({"a": values})
    column = infer_column(table, "a")[0]
    assert column.kind == kind
    np.testing.assert_array_equal(column.values(table), read)


@pytest.mark.parametrize(
    ("values", "type_"), [([b"\xff", b"x"], "binary"), ([[1], [2]], "list")]
)
def test_other_types_are_refused(values, type_):
    with pytest.raises(TableError, match=f"'a' holds values of type {type_}"):
        inferred(values)


@pytest.mark.parametrize(
    "values",
    [
        [3.0] * 5,
        [0.1, None] * 5,
        # Different by rounding alone.
        [0.3, 0.1 + 0.2],
    ],
)
def test_a_column_with_one_value_is_constant(values):
    column = inferred(values)
    assert column.constant
    assert column.scale == 1.0


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        # Milliseconds, a Julian date, a northing, steps of single precision.
        ([1.7e12, 1.7e12 + 1, 1.7e12 + 2], "float64"),
        ([5800000.1, 5800000.2, 5800000.4], "float64"),
        ([2000, 2001, 2002], "float32"),
        ([0.1, 0.2, 1e9], "float32"),
    ],
)
def test_numbers_that_single_precision_merges_are_double(values, dtype):
    column = inferred(values)
    assert (column.dtype, column.constant) == (dtype, False)
    assert (column.low, column.high) == (values[0], values[-1])


@pytest.mark.parametrize("values", [[None] * 3, [np.nan] * 3, ["", None]])
def test_a_column_without_values_is_refused(values):
    with pytest.raises(TableError, match=r"Column 'a' has no values; leave it out\."):
        inferred(values)


def test_more_than_a_thousand_categories_are_hashed():
    texts = [f"t{number}" for number in range(1001)]
    column = inferred(texts[:1000] * 2)
    assert (len(column.categories), column.buckets) == (1000, 0)
    column = inferred(texts * 2)
    assert (column.categories, column.buckets) == ((), 256)
    assert "1001 distinct texts are distributed over 256 buckets" in column.remarks[-1]


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_number_is_missing_with_a_remark(value):
    column = inferred([1.0, 2.0, value])
    assert (column.high, column.num_missing) == (2.0, 1)
    assert column.remarks == (
        "Its infinite number, in 1 cell, counts as a missing value.",
    )


def test_text_in_a_numeric_column_counts_as_missing():
    column, table = inferred([1.0, 2.0]), pa.table({"a": ["1", "-2.5e3", "x"]})
    np.testing.assert_array_equal(column.values(table), [1.0, -2500.0, np.nan])
    with pytest.raises(TableError, match="'a' has 'x' in row 3, which is not a number"):
        column.check(table)


def test_dates_in_a_numeric_column_are_refused():
    asked = pa.table({"a": pa.array([0, 1], pa.date32())})
    with pytest.raises(TableError, match=r"type date32\[day\], but must hold numbers"):
        inferred([1.0, 2.0]).values(asked)


def test_whole_numbers_are_texts_where_other_rows_had_texts():
    column = Column("a", "categorical", categories=("4", "6", "rotary"))
    for values, texts in (([4, 6], ["4", "6"]), ([4.0, None], ["4", ""])):
        assert column.values(pa.table({"a": values})).tolist() == texts
    with pytest.raises(TableError, match="type int64, but must hold text"):
        inferred(["x", "y"]).values(pa.table({"a": [4, 6]}))


def test_a_missing_column_error_suggests_a_similar_name():
    with pytest.raises(TableError, match=r"no feature column 'a1' \(did you mean 'A1'"):
        Column("a1", "numeric").values(pa.table({"A1": [1.0]}))


def test_the_only_dash_among_words_is_said_to_be_missing():
    cells = ["red", "-", "blue", "-"]
    column = inferred(cells)
    assert column.num_missing == 2
    assert column.remarks == (
        "Its '-', in 2 cells, is read as a missing value; text overrules this.",
    )
    # Another mark, that came later, is missing as well.
    assert column.values(pa.table({"a": ["-", "?", "--"]})).tolist() == ["", "", "--"]
    asked = infer_column(pa.table({"a": cells}), "a", None, Override("text"))[0]
    assert asked.categories == ("-", "blue", "red")


@pytest.mark.parametrize(
    "cells",
    [["+", "-"], ["red", "-"], ["red", "blue", "-", "--"], ["red", "blue", "-", "?"]],
)
def test_a_dash_that_may_be_a_category_is_one(cells):
    column = inferred(cells)
    assert "-" in column.categories
    assert not column.remarks


def test_dates_of_every_type_are_seconds():
    seconds = [0, 86400 * 20000 + 61, None]
    for unit, factor in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        ticks = [None if s is None else s * factor for s in seconds]
        for zone in (None, "Europe/Berlin"):
            column = inferred(pa.array(ticks, pa.timestamp(unit, zone)))
            table = pa.table({"a": pa.array(ticks, pa.timestamp(unit, zone))})
            least = np.iinfo(np.int64).min
            assert column.values(table).tolist() == [*seconds[:2], least]
    days = pa.array([0, 3, None], pa.date32())
    column = inferred(days)
    assert column.values(pa.table({"a": days}))[:2].tolist() == [0, 3 * 86400]
    assert (column.low, column.high, column.mean) == (0.0, 259200.0, 1.5)
    # Both days are in January, at midnight.
    assert column.cycles == ("weekday",)


@pytest.mark.parametrize(
    ("text", "cells", "read"),
    [
        ("number:decimal-comma", ["1.234", "5,5"], [1234, 5.5]),
        ("number:percent", ["12", "5%"], [0.12, 0.05]),
        ("number", ["5", "x", "7"], [5, np.nan, 7]),
        ("date:day-first", ["01/02/1970"], [31 * 86400]),
        ("date:unix-ms", [1000, 5500], [1, 5]),
        ("duration:minutes", ["1:30"], [90]),
        ("boolean", ["y", "n", "perhaps"], [1, 0, np.nan]),
        ("ordered:low,middle,high", ["High", "low"], [2, 0]),
        ("text", [7, 8], ["7", "8"]),
    ],
)
def test_an_override_says_what_a_column_is(text, cells, read):
    table = pa.table({"a": cells})
    column = infer_column(table, "a", None, Override.parse(text))[0]
    values = column.values(table)
    np.testing.assert_array_equal(values, np.array(read, dtype=values.dtype))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("numbr", r"must be one of number, .* Received: 'numbr'"),
        ("date:dmy", r"one of year-first, .* Received: 'date:dmy'"),
        ("ordered:low", r"from the least to the greatest"),
        ("hashed:1", r"from 2 to 10000"),
        ("number:decimal-comma,decimal-point", "either a decimal point or"),
    ],
)
def test_an_override_without_meaning_is_refused(text, message):
    with pytest.raises(OverrideError, match=message):
        Override.parse(text)


@pytest.mark.parametrize(
    ("text", "cells", "message"),
    [
        ("number", ["a", "b"], r"cannot be read as a number.*'a'"),
        ("date:day-first", ["13", "x"], r"cannot be read as a date.*'13'"),
        ("ordered:S,M", ["S", "XL"], r"text 'XL' in row 2.* S, M; add it"),
    ],
)
def test_cells_that_contradict_an_override_are_refused(text, cells, message):
    with pytest.raises(TableError, match=message):
        infer_column(pa.table({"a": cells}), "a", None, Override.parse(text))[0]


@pytest.mark.parametrize(("rows", "intervals"), [(100, 12), (4000, 20), (20_000, 48)])
def test_more_rows_get_more_edges(rows, intervals):
    column = inferred(np.random.default_rng(0).normal(size=rows))
    assert len(column.edges) == intervals + 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("month", "date"), ("period", "date"), ("x", "date")),
        *(("price", "numeric"), ("house_id", "numeric"), ("zipCode", "numeric")),
    ],
)
def test_a_name_tells_amounts_from_months_in_digits(name, kind):
    months = [year * 100 + month for year in (2011, 2012) for month in range(1, 13)]
    column = infer_column(pa.table({name: months}), name)[0]
    assert column.kind == kind


ROWS = 40
TABLE = pa.table(
    {
        "number": np.sqrt(np.arange(ROWS)),
        "price": [f"${1 + row**2:,}" for row in range(ROWS)],
        "color": ["red", "blue", "NA", "green"] * (ROWS // 4),
        "day": [f"2024-02-{1 + row % 29:02d}" for row in range(ROWS)],
        "sold": ["yes", "no"] * (ROWS // 2),
    }
)


@pytest.mark.parametrize("target", ["number", "sold"])
def test_a_remembering_table_reads_each_text_column_once(monkeypatch, target):
    plain = Schema.infer(TABLE, target)
    rows = np.array([30, 3, 4, 17])
    expected = plain.refitted(TABLE, np.arange(0, ROWS, 3))
    inputs, targets = expected.inputs(TABLE.take(rows)), expected.targets(TABLE)
    read = []
    of = Texts.of

    def counted(column):
        read.append(len(column))
        return of(column)

    monkeypatch.setattr(Texts, "of", counted)
    table = ParsedTable(TABLE)
    schema = Schema.infer(table, target)
    assert schema == plain
    assert schema.refitted(table, np.arange(0, ROWS, 3)) == expected
    found = schema.inputs(ParsedTable(table, rows))
    for name, values in inputs.items():
        np.testing.assert_array_equal(found[name], values)
    np.testing.assert_array_equal(schema.targets(table), targets)
    assert read == [ROWS] * 4
