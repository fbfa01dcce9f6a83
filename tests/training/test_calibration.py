"""Trainings on simulated tables of which the exact posterior predictive is known.

Weights are drawn from the prior and rows given these, as the model has it. Features
have mean 0 in the training rows, so that the exact posterior of a linear regression's
kernel is independent of that of its bias, as in the model.
"""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.special import expit

from tests.trained import trained_table

TRAINING_ROWS, NEW_ROWS = 12, 600
NOISE = 0.5
# The kernel's is 1/sqrt(fan_in), the bias' 1.
PRIOR_SCALES = np.array([0.5**0.5, 0.5**0.5, 1.0])


def simulated(seed):
    """Features, what the weights are multiplied with, outputs, and a generator."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=[TRAINING_ROWS + NEW_ROWS, 2])
    known = x[:TRAINING_ROWS]
    z = (x - known.mean(axis=0)) / known.std(axis=0)
    design = np.column_stack([z, np.ones(len(z))])
    weights = PRIOR_SCALES * generator.normal(size=3)
    return x, design, design @ weights, generator


def trained(x, y, likelihood):
    """A linear model with the metrics of the new rows, and its prediction for them."""
    new = np.arange(len(x)) >= TRAINING_ROWS
    spec = {
        "target": "y",
        # The exact posterior predictive knows the training rows alone.
        "recalibration": "none",
        "model": {
            "hidden_units": [],
            "posterior": "full_covariance_normal",
            "likelihood": likelihood,
        },
        "training": {
            "epochs": 3200,
            "batch_size": TRAINING_ROWS,
            "validation": {"column": "new"},
        },
    }
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": y, "new": new})
    found = trained_table(table, spec)
    rows = x[TRAINING_ROWS:].astype(np.float32)
    return found, found.model.predictive(rows, num_samples=40_000)


def test_regression_has_the_certainty_and_coverage_of_the_exact_one():
    x, design, function, generator = simulated(seed=0)
    y = function + NOISE * generator.normal(size=len(x))
    likelihood = {"name": "normal", "scale": NOISE, "standardize": False}
    found, prediction = trained(x, y, likelihood)
    known, new = np.split(design, [TRAINING_ROWS])
    covariance = np.linalg.inv(np.diag(PRIOR_SCALES**-2) + known.T @ known / NOISE**2)
    mean = new @ covariance @ known.T @ y[:TRAINING_ROWS] / NOISE**2
    epistemic = np.sum(new @ covariance * new, axis=1)
    # 1 % for the draws of the prediction, the rest for those of the training.
    np.testing.assert_allclose(prediction.epistemic[:, 0], epistemic, rtol=0.08)
    stddev = np.sqrt(epistemic + NOISE**2)
    assert np.max(np.abs(prediction.mean[:, 0] - mean) / stddev) < 0.1
    targets = y[TRAINING_ROWS:]
    for percent in (50, 90, 95):
        lower, upper = stats.norm(mean, stddev).interval(percent / 100)
        covered = np.mean((lower <= targets) & (targets <= upper))
        # The figures' 100 draws are 7 % off a deviation: 2 to 3 % of the rows.
        assert abs(found.metrics[f"coverage_{percent}"] - covered) < 0.04


@pytest.mark.slow
def test_probabilities_of_classes_are_those_of_the_exact_predictive():
    x, design, logits, generator = simulated(seed=2)
    y = generator.uniform(size=len(x)) < expit(logits)
    found, prediction = trained(x, y, "bernoulli")
    known, new = np.split(design, [TRAINING_ROWS])
    axes = np.linspace(-4, 4, 41)[:, None] * PRIOR_SCALES
    weights = np.stack(np.meshgrid(*axes.T), axis=-1).reshape(-1, 3)
    signs = np.where(y, 1.0, -1.0)[:TRAINING_ROWS]
    log_joint = -0.5 * np.sum(np.square(weights / PRIOR_SCALES), axis=1)
    log_joint -= np.logaddexp(0.0, -signs * (weights @ known.T)).sum(axis=1)
    posterior = np.exp(log_joint - log_joint.max())
    exact = posterior @ expit(weights @ new.T) / posterior.sum()
    # The best normal posterior is not quite the exact one.
    np.testing.assert_allclose(prediction.probabilities[:, 1], exact, atol=0.03)
    observed = np.where(y[TRAINING_ROWS:], exact, 1.0 - exact)
    assert abs(found.metrics["log_likelihood"] - np.log(observed).mean()) < 0.02
