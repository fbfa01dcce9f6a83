"""The trials of temperatures."""

import numpy as np

import tfbbb
from tfbbb.training import temperature_choice, train_table

ROWS = 200


def test_members_that_diverged_are_worth_nothing():
    likelihood = tfbbb.likelihoods.LogNormal(scale=0.5)
    likelihood.build((None, 1))
    generator = np.random.default_rng(0)
    outputs = generator.normal(size=(ROWS, 4, 1)).astype(np.float32)
    targets = np.exp(outputs[:, 0] + 0.5 * generator.normal(size=(ROWS, 1)))

    def tried(drawn):
        return temperature_choice._try(likelihood, 0.1, drawn, None, targets, None)

    assert np.isfinite(tried(outputs).log_likelihood)
    missing = outputs.copy()
    missing[7] = np.nan
    assert tried(missing).log_likelihood == -np.inf


def test_temperatures_of_few_rows_are_compared_without_calibration():
    x = np.random.default_rng(0).normal(size=19)
    spec = {
        "target": "y",
        "model": {"hidden_units": [4], "likelihood": "normal"},
        "training": {"steps": 4},
    }
    tried = train_table({"x": x, "y": np.sin(x)}, spec).recipe["tried"]
    assert len(tried) >= 3
    assert all(trial["factor"] == 1.0 for trial in tried)
