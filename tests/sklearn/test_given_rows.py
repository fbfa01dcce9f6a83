"""What estimators make of the rows and targets of frames."""

import datetime
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.sklearn.estimators import SHORTEST, line, regressor
from tfbbb.sklearn import BayesianRegressor
from tfbbb.sklearn.given_rows import columns_without_values, given_targets, to_table

ROWS = 12
NUMBERS = np.arange(ROWS)


def targets(values, estimator=BayesianRegressor):
    return given_targets(estimator(), values, ROWS)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Series(NUMBERS, index=NUMBERS[::-1]), NUMBERS),
        (pd.Series(NUMBERS, dtype="Int64"), NUMBERS),
        (pd.Series(NUMBERS > 3, dtype="boolean"), NUMBERS > 3),
        (pd.Categorical(NUMBERS), NUMBERS),
        (pd.Series(list("ab") * 6, dtype="string[pyarrow]"), list("ab") * 6),
        (pa.chunked_array([NUMBERS * 0.5]), NUMBERS * 0.5),
    ],
)
def test_targets_keep_their_values(values, expected):
    np.testing.assert_array_equal(targets(values), expected)
    assert targets(values).dtype.kind == np.array(
        expected, dtype=object
    ).dtype.kind or (targets(values).dtype.kind == np.asarray(expected).dtype.kind)


@pytest.mark.parametrize(
    "values",
    [
        pd.to_timedelta(NUMBERS, unit="h"),
        pd.Series(pd.to_timedelta(NUMBERS, unit="h")),
        [datetime.timedelta(hours=int(hours)) for hours in NUMBERS],
    ],
)
def test_targets_of_durations_are_seconds(values):
    with pytest.warns(UserWarning, match="^The targets are durations, so all predict"):
        np.testing.assert_array_equal(targets(values), 3600.0 * NUMBERS)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            pd.Series(NUMBERS > 3, dtype="boolean").where(NUMBERS > 1),
            "drop the rows without a target. Received: <NA> in row 0",
        ),
        (
            pd.date_range("2020-03-01", periods=ROWS),
            "days=1)`. Received: 2020-03-01T00:00:00.000000 in row 0",
        ),
        ([datetime.date(2020, 3, 1)] * ROWS, "Received: 2020-03-01 in row 0"),
        (pd.cut(NUMBERS, 3), "one type of them. Received: values of type Interval"),
        (
            pd.period_range("2020", periods=ROWS, freq="M"),
            "one type of them. Received: values of type Period",
        ),
        ([{"a": 1}, {"a": 2}] * 6, "booleans. Received: values of type dict"),
    ],
)
def test_other_targets_are_refused_in_a_sentence(values, message):
    with pytest.raises(ValueError, match=f"{re.escape(message)}$"):
        targets(values)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["a", "a"],
            "X cannot be read: the column name 'a' appears 2 times; column names must "
            "be unique.",
        ),
        (
            ["a", ""],
            "X cannot be read: column 2 of 2 has no name; name it or remove it.",
        ),
        (
            ["a", 1],
            "The names of columns must be all texts, or none: convert them by "
            "`X.columns = X.columns.astype(str)`. Received: a name of type int, 1",
        ),
    ],
)
def test_names_that_are_not_names_are_refused(names, message):
    frame = pd.DataFrame(np.ones((ROWS, 2)), columns=names)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        to_table(BayesianRegressor(), frame, reset=True, fewest=2)


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ([3, 5], ["3", "5"]),
        (pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]), ["('a', 1)", "('a', 2)"]),
    ],
)
def test_names_may_be_numbers_or_tuples(columns, names):
    frame = pd.DataFrame(np.ones((ROWS, 2)), columns=columns)
    table = to_table(BayesianRegressor(), frame, reset=True, fewest=2)
    assert table.column_names == names


def test_columns_without_values_are_found():
    table = pa.table(
        {
            "none": pa.nulls(2),
            "nan": [float("nan")] * 2,
            "marks": ["", "NA"],
            "number": [float("nan"), 1.0],
            "text": [None, "a"],
        }
    )
    assert columns_without_values(table) == ["none", "nan", "marks"]


def test_a_column_without_values_is_left_out_and_then_ignored():
    x, y = line()
    frame = pd.DataFrame({"a": x[:, 0], "b": np.nan, "mixed": [1, "a"] * 60})
    remark = (
        "Column 'b' has no value in the rows of the fit, so it is left out, and "
        "ignored in the rows to predict."
    )
    with pytest.warns(UserWarning, match=f"^{remark}$"):
        model = regressor(**SHORTEST).fit(frame, y)
    assert model.recipe_["remarks"][-1] == remark
    expected = model.predict(frame)
    np.testing.assert_array_equal(model.predict(frame.assign(b=2.0)), expected)
    # The half of a mixed column that holds numbers alone is read as in the fit.
    np.testing.assert_allclose(model.predict(frame[::2]), expected[::2], rtol=1e-6)
    with pytest.raises(ValueError, match=r"^No column of the rows has a value"):
        regressor(**SHORTEST).fit(frame[["b"]], y)
