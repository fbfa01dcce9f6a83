"""Intervals beyond the training rows, and of rows with missing cells."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from tfbbb.training import train_table
from tfbbb.training.familiarity import describe_extrapolation


@pytest.mark.parametrize(
    ("without", "covered", "expected"),
    [
        (0.712, 0.839, "would cover 71 % .*, and wider ones 84 %"),
        (0.659, 0.661, "hardly widen: .* would cover 66 % .* widened or not"),
    ],
)
def test_blocks_that_were_left_out_say_whether_width_helps(without, covered, expected):
    trial = {"blocks": 8, "coverage_90_without": without, "coverage_90": covered}
    (sentence,) = describe_extrapolation(SimpleNamespace(trial=trial))
    assert re.search(expected, sentence)


@pytest.mark.slow
def test_intervals_without_a_column_cover_as_many_targets():
    generator = np.random.default_rng(3)

    def make(num_rows):
        area, year = generator.uniform(size=(2, num_rows))
        city = generator.choice(["Bern", "Genf"], num_rows)
        price = 10.0 * area + 4.0 * year + (city == "Genf")
        price += generator.normal(0.0, 1.0, num_rows)
        return {"area": area, "year": year, "city": city, "price": price}

    model = {"hidden_units": [], "members": 4, "likelihood": "normal"}
    training = {"epochs": 40, "kl_schedule": "constant", "learning_rate": 0.05}
    spec = {"target": "price", "model": model, "training": training}
    trained = train_table(make(400), spec)
    new = make(1000)
    inputs = trained.schema.inputs(new)

    def coverage(*columns):
        without = dict(inputs)
        for name in columns:
            blank = "" if name == "city" else np.nan
            without[name] = np.full_like(inputs[name], blank)
        low, high = trained.model.predictive(without).interval(0.9)
        return ((low[:, 0] <= new["price"]) & (new["price"] <= high[:, 0])).mean()

    for columns in ((), ("area",), ("city",), ("area", "year"), ("area", "city")):
        # The share of 1000 rows has a standard error of .01.
        assert 0.85 < coverage(*columns) < 0.96, columns
