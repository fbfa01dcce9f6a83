"""The trials of temperatures."""

import numpy as np
import pytest

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
    far = outputs.copy()
    far[7] = 6000.0
    # The row is absurd, not infinite: a tighter bound of the means repairs it.
    assert tried(far).high < likelihood.target_high.numpy()
    missing = outputs.copy()
    missing[7] = np.nan
    assert tried(missing).log_likelihood == -np.inf


@pytest.mark.parametrize(("rows", "calibrates"), [(19, False), (20, True)])
def test_temperatures_of_few_rows_are_compared_calibrated(rows, calibrates):
    """Otherwise members that are too certain lose to members that learned nothing."""
    x = np.random.default_rng(0).normal(size=rows)
    table = {"x": x, "y": np.sin(x)}
    spec = {
        "target": "y",
        "model": {"hidden_units": [4], "likelihood": "normal"},
        "training": {"steps": 4},
    }
    tried = train_table(table, spec).recipe["tried"]
    assert len(tried) >= 3
    assert all((trial["factor"] != 1.0) == calibrates for trial in tried)
