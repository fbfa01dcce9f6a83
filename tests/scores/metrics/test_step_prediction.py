"""The mixture of the draws of a step, against what prediction makes of many draws."""

import keras
import numpy as np
import pytest

from tfbbb import likelihoods, metrics
from tfbbb.base.call_context import call_with
from tfbbb.scores.metrics.step_prediction import StepPrediction

LIKELIHOODS = {
    "normal": likelihoods.Normal(heteroscedastic=True),
    "student_t": likelihoods.StudentT(),
    "gamma": likelihoods.Gamma(),
    "normal_mixture": likelihoods.NormalMixture(2),
    "poisson": likelihoods.Poisson(),
    "grades": likelihoods.Grades(1, 4),
}


def step(name, draws, rows=5):
    """Returns the prediction of a step of random outputs."""
    likelihood = LIKELIHOODS[name]
    num_outputs = likelihood.num_outputs(1)
    if not likelihood.built:
        likelihood.build((None, num_outputs))
    outputs = np.random.default_rng(0).normal(size=(rows, draws, num_outputs))
    return StepPrediction(likelihood, outputs)


@pytest.mark.parametrize("draws", [1, 3])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_quantiles_invert_the_distribution_function(name, draws):
    prediction = step(name, draws)
    levels = [0.05, 0.5, 0.9]
    quantiles = prediction.quantile(levels)
    assert quantiles.shape == (5, 3, 1)
    for index, level in enumerate(levels):
        reached = prediction.cdf(quantiles[:, index]).numpy()
        if prediction.discrete:
            assert np.all(reached >= level)
            before = prediction.cdf(quantiles[:, index] - 1.0)
            assert np.all(before < level)
        else:
            np.testing.assert_allclose(reached, level, rtol=1e-6)


@pytest.mark.parametrize("draws", [1, 3])
def test_places_of_a_row_score_like_rows_except_nll(draws):
    generator = np.random.default_rng(1)
    outputs = generator.normal(size=(5, draws, 4, 2))
    by_place = np.moveaxis(outputs, 2, 1).reshape(20, draws, 2)
    rows = StepPrediction(LIKELIHOODS["normal"], by_place)
    places = StepPrediction(LIKELIHOODS["normal"], outputs)
    y = generator.normal(size=(5, 4, 1))
    chosen = [
        metrics.CRPS(),
        metrics.RootMeanSquaredError(),
        metrics.IntervalCoverage(),
        metrics.IntervalWidth(),
        metrics.CalibrationError(),
    ]
    for metric in chosen:
        with call_with(prediction=places):
            metric.update_state(y, places.mean)
        found = float(metric.result())
        metric.reset_state()
        with call_with(prediction=rows):
            metric.update_state(y.reshape(20, 1), rows.mean)
        assert found == pytest.approx(float(metric.result()), rel=1e-5)
    likelihood = metrics.NegativeLogLikelihood()
    with call_with(prediction=places):
        likelihood.update_state(y, places.mean)
    joint = -rows.log_prob(y.reshape(20, 1)).numpy().reshape(5, 4).sum(axis=1)
    assert float(likelihood.result()) == pytest.approx(joint.mean(), rel=1e-5)


def test_unordered_classes_have_no_distribution_function():
    likelihood = likelihoods.Categorical()
    likelihood.build((None, 3))
    prediction = StepPrediction(likelihood, keras.ops.zeros((2, 1, 3)))
    with pytest.raises(ValueError, match="Received: likelihood=Categorical"):
        prediction.cdf([[0.0], [1.0]])
    with pytest.raises(ValueError, match="Received: likelihood=Categorical"):
        prediction.quantile([0.5])
