import numpy as np
import pytest
from scipy import stats

from tfbbb import posteriors
from tfbbb.layers import DenseVariational


@pytest.fixture
def kernel():
    layer = DenseVariational(3, kl_weight=1.0)
    layer.build((None, 4))
    generator = np.random.default_rng(0)
    layer.kernel.variables["mean"].assign(generator.normal(size=(4, 3)))
    layer.kernel.variables["log_scale"].assign(generator.normal(size=(4, 3)) - 1.0)
    return layer.kernel


def test_log_prob_sums_the_normal_log_densities(kernel):
    weights = np.random.default_rng(1).normal(size=(4, 3)).astype("float32")
    scale = np.exp(kernel.variables["log_scale"].numpy())
    exact = stats.norm.logpdf(weights, kernel.variables["mean"].numpy(), scale).sum()
    np.testing.assert_allclose(kernel.log_prob(weights), exact, rtol=1e-5)


def test_draws_have_the_mean_and_standard_deviation_of_q(kernel):
    draws = np.stack([kernel.draw([0, seed]) for seed in range(4000)])
    standardized = (draws - np.asarray(kernel.mean)) / np.asarray(kernel.stddev)
    # 12 weights: 4.5 standard errors are exceeded in one of 12 000 such sets.
    assert np.abs(standardized.mean(axis=0)).max() < 4.5 / np.sqrt(4000)
    assert np.abs(standardized.var(axis=0) - 1).max() < 4.5 * np.sqrt(2 / 4000)


def test_same_seed_draws_the_same_weights(kernel):
    np.testing.assert_array_equal(kernel.draw([1, 2]), kernel.draw([1, 2]))
    assert not np.allclose(kernel.draw([1, 2]), kernel.draw([1, 3]))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_refuses_an_initial_scale_that_is_not_positive_and_finite(scale):
    with pytest.raises(ValueError, match=f"Received: initial_scale={scale}"):
        posteriors.MeanFieldNormal(initial_scale=scale)


def test_serialized_posteriors_come_back_equal():
    posterior = posteriors.MeanFieldNormal(initial_scale=0.3)
    assert posteriors.get(posteriors.serialize(posterior)) == posterior
    assert posteriors.get("mean_field_normal") == posteriors.MeanFieldNormal()
