"""Members in prediction: an even mixture, whose disagreement is epistemic."""

import numpy as np
import pytest

from tests.prediction.recalibration.known_models import network
from tfbbb.bayes.likelihoods import Normal

X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")


@pytest.fixture(scope="module")
def model():
    return network(2, Normal(heteroscedastic=True), members=3)


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["local", "weight"])
def test_mixture_is_that_of_the_members_alone(model, method):
    num_samples = 6000
    found = model.predictive(X, num_samples, method)
    alone = [model.members[k].predictive(X, num_samples, method) for k in range(3)]
    means = np.array([member.mean for member in alone])
    errors = np.array([member.mean_standard_error for member in alone])
    error = 5.0 * np.sqrt((errors**2).mean(axis=0) / 3 + found.mean_standard_error**2)
    assert np.all(np.abs(found.mean - means.mean(axis=0)) < error + 1e-5)
    between = means.var(axis=0)
    # Draws of variance v move the variance between means by some sd * error.
    slack = 10.0 * np.sqrt(between) * errors.max(axis=0) + 1e-5
    assert np.all(np.abs(found.between_members - between) < slack)
    within = np.mean([member.epistemic for member in alone], axis=0)
    # A variance of 3000 pairs of draws of moderate kurtosis.
    tolerance = 5.0 * np.sqrt(3.0 / 3000)
    np.testing.assert_allclose(found.epistemic, between + within, rtol=tolerance)
    np.testing.assert_allclose(
        found.aleatoric, np.mean([m.aleatoric for m in alone], axis=0), rtol=tolerance
    )
    parts = found.epistemic + found.aleatoric
    np.testing.assert_allclose(found.variance, parts, rtol=1e-12)


def test_samples_are_spread_evenly(model):
    for asked, given in ((2, 12), (13, 18)):
        assert model.predictive(X, asked).num_samples == given
    assert not model.members[0].predictive(X).between_members.any()
