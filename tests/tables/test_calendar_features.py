import datetime

import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import Column
from tfbbb.tables.calendar_features import CalendarFeatures, year_and_month
from tfbbb.tables.values import MISSING_DATE

DAY = 86400


def test_years_and_months_are_those_of_datetime_for_400_years():
    first = datetime.date(1799, 12, 1)
    dates = [first + datetime.timedelta(days=i) for i in range(146097 + 100)]
    days = np.array(dates, dtype="datetime64[D]").astype(np.int64)
    year, month = year_and_month(days)
    np.testing.assert_array_equal(year, [date.year for date in dates])
    np.testing.assert_array_equal(month, [date.month for date in dates])


def described(**fields):
    column = {"low": 0, "high": 0, "mean": 0.0, "scale": 1.0, "missing": False}
    return {**column, "constant": False, "cycles": [], **fields}


def test_features_are_days_years_and_cycles_of_the_calendar():
    generator = np.random.default_rng(0)
    low = int(np.datetime64("2019-03-05T10:00:00", "s").astype(int))
    seconds = low + np.append(0, generator.integers(0, 3 * 365 * DAY, 200))
    table = pa.table({"when": pa.array(seconds, pa.timestamp("s"))})
    column = Column.infer(table, "when", None)
    assert column.cycles == ("month", "weekday", "hour")
    names = ("low", "high", "mean", "scale", "missing", "constant", "cycles")
    layer = CalendarFeatures([{name: getattr(column, name) for name in names}])
    features = np.asarray(layer(seconds[:, None]))
    assert features.shape == layer.compute_output_shape((201, 1)) == (201, 8)
    expected = []
    for second in seconds:
        when = datetime.datetime.fromtimestamp(second, datetime.UTC)
        midnight = when.replace(hour=0, minute=0, second=0)
        turns = [
            (when.month - 1) / 12,
            when.weekday() / 7,
            (when - midnight).seconds / DAY,
        ]
        angles = 2 * np.pi * np.array(turns)
        last = datetime.datetime.fromtimestamp(seconds.max(), datetime.UTC).year
        expected.append(
            [
                (second - low) / DAY,
                (when.year - 2019) / (last - 2019),
                *np.stack([np.sin(angles), np.cos(angles)], axis=1).ravel(),
            ]
        )
    days = np.array(expected)[:, 0]
    np.testing.assert_allclose(
        features[:, 0], (days - days.mean()) / days.std(), atol=1e-5
    )
    np.testing.assert_allclose(features[:, 1:], np.array(expected)[:, 1:], atol=1e-5)
    restored = CalendarFeatures.from_config(layer.get_config())
    np.testing.assert_array_equal(restored(seconds[:, None]), features)


def test_a_missing_date_is_zero_and_marked_if_training_missed_some():
    asked = np.array([[MISSING_DATE], [DAY]])
    columns = described(mean=1.0, scale=2.0, cycles=["weekday"])
    np.testing.assert_array_equal(CalendarFeatures([columns])(asked)[0], [0, 0, 0])
    marked = CalendarFeatures([{**columns, "missing": True}])(asked)
    np.testing.assert_array_equal(np.asarray(marked)[:, -1], [1, 0])


def test_a_minute_is_resolved_far_from_1970():
    low = int(np.datetime64("2150-01-01", "s").astype(int))
    layer = CalendarFeatures([described(low=low, high=low + DAY, cycles=["hour"])])
    features = np.asarray(layer(np.array([[low + 6 * 3600], [low + 6 * 3600 + 60]])))
    angle = 2 * np.pi * 60 / DAY
    np.testing.assert_allclose(features[1, 2], -np.sin(angle), rtol=1e-3)


def test_dates_without_times_have_no_hours():
    days = pa.array([datetime.date(2020, 1, i + 1) for i in range(20)])
    column = Column.infer(pa.table({"day": days}), "day", None)
    assert column.cycles == ("weekday",)


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"scale": 0.0}, "must be positive"), ({"cycles": ["moon"]}, "month, weekday")],
)
def test_a_wrong_description_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        CalendarFeatures([described(**fields)])
