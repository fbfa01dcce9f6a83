from datetime import date, datetime, time

import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import TableError
from tfbbb.tables.groups_and_times import group_repeated_rows, read_groups, read_times
from tfbbb.tables.override import Override


def test_rows_with_equal_values_are_a_group():
    table = pa.table(
        {
            "x": [0.0, 1.0, -0.0, None, float("nan"), 1.0],
            "n": pa.array([1, 2, 1, 3, 3, 2], pa.int64()),
            "word": ["a", "b", "a", None, None, "c"],
            "yes": [True, False, True, None, None, False],
        }
    )
    groups = group_repeated_rows(table, table.column_names)
    assert groups.tolist() == [0, 1, 0, 2, 2, 3]
    assert group_repeated_rows(table, ["x"]).tolist() == [0, 1, 0, 2, 2, 1]


def test_values_in_other_columns_are_not_equal():
    table = pa.table({"a": [1.0, 2.0], "b": [2.0, 1.0]})
    assert group_repeated_rows(table, ["a", "b"]) is None


def test_the_groups_are_those_of_a_dictionary_of_rows():
    generator = np.random.default_rng(0)
    numbers = generator.integers(0, 12, 3000)
    words = np.array(["a", "b", "c"])[generator.integers(0, 3, 3000)]
    halves = [pa.array(words[:1000]), pa.array(words[1000:])]
    chunked = pa.chunked_array([half.dictionary_encode() for half in halves])
    table = pa.table({"x": numbers * 0.1, "word": chunked, "time": numbers})
    table = table.set_column(2, "time", table["time"].cast(pa.timestamp("s")))
    known = {}
    expected = [
        known.setdefault(row, len(known)) for row in zip(numbers, words, strict=True)
    ]
    assert group_repeated_rows(table, table.column_names).tolist() == expected


@pytest.mark.parametrize("values", [["b", "a", "b"], [2.5, 1.0, 2.5], [7, 8, 7]])
def test_equal_values_of_a_column_are_a_group(values):
    groups = read_groups(pa.table({"g": values}), "g")
    assert groups[0] == groups[2] != groups[1]


@pytest.mark.parametrize("values", [["a", None], ["a", ""], [1.0, float("nan")]])
def test_a_row_without_a_group_is_refused(values):
    with pytest.raises(TableError, match="group column 'g' has no value in row 2"):
        read_groups(pa.table({"g": values}), "g")


DAYS = [date(2024, 3, 1), date(2023, 12, 24), date(2024, 2, 29)]


def read(values):
    return read_times(pa.table({"t": values}), "t")


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2],
        ["2024", "2022", "2023"],
        DAYS,
        [datetime(day.year, day.month, day.day, 12) for day in DAYS],
        pa.array(DAYS).dictionary_encode(),
        [time(18), time(6, 30), time(7)],
        [day.isoformat() for day in DAYS],
        ["2024-03-01T00:00", "2023-12-24 18:30:15.25", "2024-02-29"],
        ["2024-03-01T00:30+01:00", "2024-02-29T20:00-03:00", "2024-02-29T23:20Z"],
        ["01.03.2024", "24.12.2023", "29.02.2024"],
        ["2 days", "3 h", "1 day 6 h"],
    ],
)
def test_values_are_ordered_in_time(values):
    assert np.argsort(read(values)).tolist() == [1, 2, 0]


def test_equal_times_are_equal_in_every_zone():
    times = read(["2024-03-01T01:00+01:00", "2024-03-01T00:00Z", "2024-03-01"])
    assert len(set(times)) == 1


def test_what_a_user_says_of_a_column_decides_the_order_of_its_dates():
    days = pa.table({"t": ["02/01/2024", "01/02/2024"]})
    assert np.argsort(read_times(days, "t")).tolist() == [1, 0]
    day_first = Override("date", ("day-first",))
    assert np.argsort(read_times(days, "t", day_first)).tolist() == [0, 1]


def test_a_column_that_is_no_feature_orders_rows_by_what_its_cells_suggest():
    table = pa.table({"t": [day.isoformat() for day in DAYS]})
    times = read_times(table, "t", Override.parse("ignore"))
    assert np.argsort(times).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1.0, None], "has no value in row 2"),
        (["2024-03-01", ""], "has no value in row 2"),
        (["2024-03-01", "soon"], "the text 'soon' in row 2; it must hold"),
        (["yes", "no"], "holds true and false"),
    ],
)
def test_a_column_that_holds_no_times_is_refused(values, sentence):
    with pytest.raises(TableError, match=sentence):
        read(values)
