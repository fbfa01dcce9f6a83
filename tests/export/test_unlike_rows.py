"""Sentences about rows that are unlike the training rows, and files without them."""

import keras
import numpy as np
import pyarrow as pa
import pytest

import tfbbb
from tfbbb.training.familiarity import fit_familiarity
from tfbbb.training.network import make_network
from tfbbb.training.preparation import prepare
from tfbbb.training.spec import JobSpec

ROWS = 600


@pytest.fixture(scope="module")
def cars(tmp_path_factory):
    """An untrained model of cars: none is electric with an engine, or 20 to 50 old."""
    generator = np.random.default_rng(0)
    young = generator.random(ROWS) < 0.5
    age = np.where(
        young, generator.uniform(0, 20, ROWS), generator.uniform(50, 90, ROWS)
    )
    fuel = generator.choice(["petrol", "diesel", "electric"], ROWS)
    engine = np.where(fuel == "electric", "none", generator.choice(["V6", "V8"], ROWS))
    days = generator.integers(0, 1000, ROWS).astype("datetime64[D]")
    days[days > np.datetime64("1971-06-01")] += np.timedelta64(2000, "D")
    table = pa.table(
        {"age": age.round(), "fuel": fuel, "engine": engine, "day": days, "y": age}
    )
    spec = JobSpec(target="y")
    prepared = prepare(table, spec)
    keras.utils.set_random_seed(0)
    model = make_network(prepared.schema, spec.model, seed=0)
    model.likelihood.adapt(prepared.rows.targets())
    model.familiarity = fit_familiarity(prepared.rows, prepared.schema)
    path = tmp_path_factory.mktemp("cars") / "1"
    model.export_predictive(path, schema=prepared.schema, num_samples=4)
    return tfbbb.load(path)


def described(model, **changes):
    row = {"age": 10.0, "fuel": "petrol", "engine": "V8", "day": "1970-09-01"} | changes
    inputs = {name: np.array([value]) for name, value in row.items()}
    familiarity = model.familiarity(inputs)
    return familiarity[0], model.describe_unlike(inputs, familiarity)[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"age": 35.0},
            "Column 'age' is 35; few or no training rows lie between 20 and 50.",
        ),
        (
            {"fuel": "electric"},
            "Columns 'fuel' and 'engine' are 'electric' and 'V8'; few or no training "
            "rows have these values together.",
        ),
    ],
)
def test_a_gap_and_a_new_pair_are_described(cars, changes, sentence):
    familiarity, sentences = described(cars, **changes)
    assert familiarity <= 0.01
    assert sentences == [sentence]


def test_dates_around_a_gap_are_written_as_dates(cars):
    _, (sentence,) = described(cars, day="1974-01-01")
    assert sentence.startswith(
        "Column 'day' is 1974-01-01; few or no training rows lie"
    )
    assert "between 1971-0" in sentence
    assert "and 1976-" in sentence


def test_an_ordinary_row_is_not_described(cars):
    familiarity, sentences = described(cars)
    assert familiarity > 0.05
    assert sentences == []


def test_values_beyond_the_training_values_have_warnings_of_their_own(cars):
    familiarity, sentences = described(cars, age=300.0)
    assert familiarity <= 0.01
    assert sentences == []


def test_few_rows_have_no_familiarity():
    table = pa.table({"a": np.arange(19.0), "y": np.arange(19.0)})
    prepared = prepare(table, JobSpec(target="y"))
    assert fit_familiarity(prepared.rows, prepared.schema) is None
