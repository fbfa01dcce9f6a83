"""Digits and kept columns of predictions, without a model."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
import typer

from tfbbb.cli.options import interval_levels
from tfbbb.cli.predicted_rows import with_kept_columns
from tfbbb.tables.writing import with_sensible_digits


def test_targets_have_the_digits_of_their_standard_deviation():
    table = pa.table(
        {
            "mean": pa.array([152.133484, 0.00123456789, 98765432.1], pa.float32()),
            "std": [54.123456, 0.000123456, 12345678.9],
            "lower_50": [1.23456789, -1e-9, 1234567.89],
        }
    )
    assert with_sensible_digits(table).to_pydict() == {
        "mean": [152.133, 0.00123457, 98765000.0],
        "std": [54.123, 0.00012346, 12346000.0],
        "lower_50": [1.235, 0.0, 1235000.0],
    }


def test_probabilities_have_the_digits_of_the_less_probable_side():
    values = [0.123456789, 0.9998765432, 0.0, 1.0]
    rounded = with_sensible_digits(pa.table({"probability_a": values}))
    assert rounded.to_pydict()["probability_a"] == [0.12346, 0.99987654, 0.0, 1.0]


def test_empty_and_infinite_numbers_stay_without_a_warning():
    values = pa.array([5.1234567, 1e30, np.nan, np.inf, 0.0], pa.float32())
    deviations = pa.array([0.0, np.nan, np.nan, np.inf, 1e-44], pa.float32())
    table = pa.table({"mean": values, "std": deviations})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = with_sensible_digits(table)["mean"].to_pylist()
    given = values.to_pylist()
    assert found == [*given[:2], None, *given[3:]]


def test_rounding_errs_by_less_than_the_last_digit():
    generator = np.random.default_rng(0)
    deviations = np.exp(generator.normal(0, 5, 1000))
    means = deviations * generator.normal(0, 100, 1000)
    table = pa.table({"mean": means, "std": deviations})
    rounded = with_sensible_digits(table)["mean"].to_numpy()
    assert np.max(np.abs(rounded - means) / deviations) < 1e-4
    texts = [repr(abs(value)) for value in rounded.tolist()]
    # The mean is up to some 400 standard deviations: three digits more.
    digits = [len(t.split("e")[0].replace(".", "").strip("0")) for t in texts]
    assert max(digits) <= 8


def test_intervals_are_percentages():
    assert interval_levels("50, 97.5%") == [0.5, 0.975]
    for wrong in ("0.9", "50,105", "50,x"):
        with pytest.raises(
            typer.BadParameter, match="not a percentage from 1 to below"
        ):
            interval_levels(wrong)


def test_identifiers_stay_and_all_columns_stay_on_request():
    table = pa.table(
        {
            "id": ["a", "b", "c"],
            "x": [1, 2, 3],
            "note": ["same", "same", "other"],
            "number": [7, 8, 9],
            "mean": [0.5, 0.25, 0.125],
        }
    )
    answers = pa.table({"mean": [1.0, 2.0, 3.0]})
    kept = with_kept_columns(answers, table, ["x", "y"], keep=False)
    assert kept.column_names == ["id", "number", "mean"]
    assert kept["mean"].to_pylist() == [1.0, 2.0, 3.0]
    kept = with_kept_columns(answers, table, ["x", "y"], keep=True)
    assert kept.column_names == ["id", "x", "note", "number", "mean_given", "mean"]
    assert kept["mean_given"].to_pylist() == [0.5, 0.25, 0.125]
