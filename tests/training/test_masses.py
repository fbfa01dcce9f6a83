"""Tables whose targets have values with a probability of their own."""

import numpy as np
import pyarrow as pa
import pytest

import tfbbb
from tfbbb.training import train_table

ROWS = 300


def trained_on(targets, x, **fields):
    table = pa.table({"x": x[:, 0], "z": x[:, 1], "y": targets})
    training = {"effort": "quick", "epochs": 30}
    return train_table(table, {"target": "y", "training": training, **fields}), table


def test_amounts_with_zeros_are_trained_judged_and_exported(tmp_path):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, 2))
    amounts = 500.0 * np.exp(0.5 * x[:, 0]) * generator.gamma(3.0, size=ROWS)
    amounts[generator.uniform(size=ROWS) < 1.0 / (1.0 + np.exp(2.0 * x[:, 1]))] = 0.0
    trained, table = trained_on(amounts, x)
    assert trained.spec.model.likelihood.label.startswith("zero_inflated ")
    assert trained.judgement["learned"]
    loaded = tfbbb.load(trained.export(tmp_path / "claims"))
    prediction = loaded.predictive(trained.schema.inputs(table))
    found = prediction.probability(0.0)[:, 0]
    assert found.mean() == pytest.approx(np.mean(amounts == 0.0), abs=0.06)
    assert found[x[:, 1] < -1.0].mean() > found[x[:, 1] > 1.0].mean() + 0.4
    lower, upper = prediction.interval(0.9)
    held = (lower[:, 0] <= amounts) & (amounts <= upper[:, 0])
    assert (lower >= 0.0).all()
    assert held.mean() > 0.85


def test_ratings_have_a_mean_and_a_probability_of_each_grade():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, 2))
    latent = 2.0 * x[:, 0] + generator.logistic(size=ROWS)
    ratings = 1.0 + np.digitize(latent, [-2.0, -1.5, 0.5, 1.0])
    ratings[ratings == 3.0] = 4.0
    trained, table = trained_on(ratings, x, model={"likelihood": "grades"})
    prediction = trained.model.predictive(trained.schema.inputs(table))
    found = np.stack([prediction.probability(grade)[:, 0] for grade in range(1, 6)], 1)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
    shares = np.bincount(ratings.astype(int), minlength=6)[1:] / ROWS
    np.testing.assert_allclose(found.mean(axis=0), shares, atol=0.05)
    assert np.corrcoef(prediction.mean[:, 0], ratings)[0, 1] > 0.6
    (said,) = trained.schema.target_columns[0].remarks
    assert said.startswith("No row has the grade 3 between 1 and 5: ")


def test_a_target_beyond_an_asked_support_is_refused_before_training():
    x = np.zeros((20, 2))
    targets = np.linspace(-1.0, 1.0, 20)
    for likelihood, rule in (
        ("zero_inflated", "must be 0 or positive numbers"),
        ("inflated_beta", "must be from 0.0 to 1.0"),
        ("grades", "must be whole numbers from 1 to 5"),
    ):
        with pytest.raises(tfbbb.tables.TableError, match=rule):
            trained_on(targets, x, model={"likelihood": likelihood})
