import datetime

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import tfbbb
from tests.training import trainings
from tfbbb.base.call_context import call_with
from tfbbb.layers.row_axes import row_axes
from tfbbb.tables.calendar_features import CalendarFeatures, year_and_month
from tfbbb.tables.column import infer_column
from tfbbb.tables.number_features import PiecewiseLinearEncoding, Standardize
from tfbbb.tables.text_features import HashedText, OneHot, text_bucket
from tfbbb.tables.values import MISSING_DATE

EDGES = [[0.0, 1.0, 3.0], [], [-2.0, 2.0]]


def test_codes_are_positions_between_edges():
    values = np.random.default_rng(0).uniform(-4, 4, size=(40, 3)).astype(np.float32)
    values[3, 2] = np.nan
    codes = np.asarray(PiecewiseLinearEncoding(EDGES)(values))
    assert codes.shape == (40, 3)
    for row, code in zip(values, codes, strict=True):
        expected = [
            np.clip((row[0] - 0.0) / 1.0, 0, 1) - 0.5,
            np.clip((row[0] - 1.0) / 2.0, 0, 1) - 0.5,
            0.0 if np.isnan(row[2]) else np.clip((row[2] + 2.0) / 4.0, 0, 1) - 0.5,
        ]
        np.testing.assert_allclose(code, expected, atol=1e-6)


def test_a_linear_function_of_the_code_fits_any_curve_at_the_edges():
    edges = np.linspace(0, 1, 9)
    codes = np.asarray(PiecewiseLinearEncoding([edges])(edges[:, np.newaxis]))
    design = np.column_stack([codes, np.ones(9)])
    curve = np.sin(7 * edges)
    fitted = design @ np.linalg.lstsq(design, curve, rcond=None)[0]
    np.testing.assert_allclose(fitted, curve, atol=1e-5)


def test_edges_that_do_not_increase_are_refused():
    with pytest.raises(ValueError, match="must increase"):
        PiecewiseLinearEncoding([[0.0, 0.0]])


NUMBERS = np.array([[0.5], [np.nan], [3.0], [20.0]], np.float32)
COLUMN = {"mean": 2.0, "scale": 4.0, "missing": True, "constant": False}


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (Standardize([COLUMN]), NUMBERS),
        (PiecewiseLinearEncoding([[0.0, 1.0, 10.0]]), NUMBERS),
        (OneHot([["blue", "red"]]), [np.array(["red", "green", "blue", "red"])]),
    ],
)
def test_copies_get_the_features_of_their_rows(layer, inputs):
    repeated = keras.tree.map_structure(
        lambda x: tf.concat([tf.constant(x)] * 3, axis=0), inputs
    )
    expected = np.asarray(layer(repeated))
    with call_with(copies_in_batch=3):
        found = np.asarray(layer(repeated))
    assert found.shape == (12, expected.shape[1])
    np.testing.assert_array_equal(found, expected)


def test_members_share_the_encoding_of_a_batch(monkeypatch):
    inputs = keras.Input((1,))
    features = Standardize([COLUMN])(inputs)
    outputs = tfbbb.layers.DenseVariational(1, seed=0)(features)
    model = tfbbb.BayesianModel(inputs, outputs, members=3)
    encoded = []
    encode = Standardize._encode

    def counted(layer, numbers):
        encoded.append(len(numbers))
        return encode(layer, numbers)

    monkeypatch.setattr(Standardize, "_encode", counted)
    assert model(NUMBERS).shape == (12, 1)
    assert encoded == [4]


def test_the_axes_of_rows_are_found_within_a_call_with_copies():
    model = trainings.model(members=4)
    with call_with(copies_in_batch=4, samples_in_batch=1):
        axes = row_axes(model)
    assert axes.no_output is None
    assert not axes.unfoldable


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
    column = infer_column(table, "when")[0]
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


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"scale": 0.0}, "must be positive"), ({"cycles": ["moon"]}, "month, weekday")],
)
def test_a_wrong_description_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        CalendarFeatures([described(**fields)])


def test_equal_texts_share_a_bucket_and_missing_text_has_its_own():
    layer = HashedText([16, 3])
    texts = tf.constant(["a", "b", "", "a"])
    features = np.asarray(layer([texts, texts]))
    assert features.shape == (4, 17 + 4)
    np.testing.assert_array_equal(features.sum(axis=1), [2, 2, 2, 2])
    np.testing.assert_array_equal(features[0], features[3])
    assert features[2, 16] == features[2, -1] == 1
    restored = HashedText.from_config(layer.get_config())
    np.testing.assert_array_equal(restored([texts, texts]), features)


def test_buckets_are_the_same_on_every_machine():
    buckets = text_bucket(tf.constant(["mill lane", "grün", ""]), 256)
    # As the first version computed them.
    assert buckets.numpy().tolist() == [76, 17, 256]
