from datetime import date, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import TableError
from tfbbb.tables.groups_and_times import read_times
from tfbbb.tables.override import Override

DAYS = [date(2024, 3, 1), date(2023, 12, 24), date(2024, 2, 29)]


def read(values):
    return read_times(pa.table({"t": values}), "t")


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2],
        [2.5, -1.0, 0.0],
        ["2024", "2022", "2023"],
        DAYS,
        [datetime(day.year, day.month, day.day, 12) for day in DAYS],
        pa.array(DAYS).dictionary_encode(),
        [time(18), time(6, 30), time(7)],
        [timedelta(days=2), timedelta(hours=1), timedelta(hours=30)],
        [day.isoformat() for day in DAYS],
        ["2024-03-01T00:00", "2023-12-24 18:30:15.25", "2024-02-29"],
        ["2024-03-01T00:30+01:00", "2024-02-29T20:00-03:00", "2024-02-29T23:20Z"],
        ["2024-03-01T00:30+01:00", "2024-02-29", "2024-02-29T23:20Z"],
        ["01.03.2024", "24.12.2023", "29.02.2024"],
        ["March 1, 2024", "12/24/2023", "2024-02-29"],
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


def test_microseconds_are_kept():
    first = datetime(2024, 3, 1)
    values = read([first, first + timedelta(microseconds=1)])
    assert values[0] < values[1]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1.0, None], "has no value in row 2"),
        ([DAYS[0], None], "has no value in row 2"),
        (["2024-03-01", ""], "has no value in row 2"),
        (["2024-03-01", "soon"], "the text 'soon' in row 2; it must hold"),
        (["yes", "no"], "holds true and false"),
        ([True, False], "holds true and false"),
    ],
)
def test_a_column_that_holds_no_times_is_refused(values, sentence):
    with pytest.raises(TableError, match=sentence):
        read(values)
