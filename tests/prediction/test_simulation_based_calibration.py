"""Simulation-based calibration where the posterior is known (Cook et al. 2006).

Parameters are drawn from the prior, data given these; under the exact posterior,
parameters and new targets have uniform ranks among its draws (Talts et al. 2018). With
orthogonal inputs, the exact posterior of a linear model has independent weights, so
that a layer can be set to it.
"""

import keras
import numpy as np
import pytest
from scipy import stats

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational

METHODS = ("local", "weight")
PRIOR_SCALE, NOISE_SCALE = 1.5, 0.7
# Columns that are orthogonal to each other and to the ones of the bias.
DESIGN = np.array([[-1, -1, 1], [-1, 1, -1], [1, -1, -1], [1, 1, 1]]) * [0.5, 1.0, 1.3]
SIMULATIONS = 240
# Of the ranks of a number among 7 draws: 30 simulations for each.
DRAWS = 7


def linear_model():
    inputs = keras.Input((3,))
    layer = DenseVariational(
        1, posterior=MeanFieldNormal(), bias_posterior=MeanFieldNormal()
    )
    return keras.Model(inputs, layer(inputs)), layer


def set_posterior(layer, targets):
    """Sets a layer to the exact posterior given targets of the design."""
    features = np.column_stack([DESIGN, np.ones(len(DESIGN))])
    gram = features.T @ features
    assert np.all(gram == np.diag(np.diag(gram)))
    precision = PRIOR_SCALE**-2 + np.diag(gram) / NOISE_SCALE**2
    mean = features.T @ targets / NOISE_SCALE**2 / precision
    log_scale = -0.5 * np.log(precision)
    for weight, part in ((layer.kernel, slice(0, 3)), (layer.bias, slice(3, 4))):
        shape = weight.shape
        weight.variables["mean"].assign(mean[part].reshape(shape))
        weight.variables["log_scale"].assign(log_scale[part].reshape(shape))


@pytest.fixture(scope="module")
def simulated():
    """Integral transforms of new targets, and ranks of the functions, by method."""
    keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    model, layer = linear_model()
    likelihood = Normal(scale=NOISE_SCALE)
    transforms = {method: [] for method in METHODS}
    ranks = {method: [] for method in METHODS}
    for simulation in range(SIMULATIONS):
        weights = PRIOR_SCALE * generator.normal(size=4)
        noise = NOISE_SCALE * generator.normal(size=4)
        set_posterior(layer, DESIGN @ weights[:3] + weights[3] + noise)
        x = generator.normal(size=(1, 3)).astype("float32")
        truth = x @ weights[:3] + weights[3]
        y = truth + NOISE_SCALE * generator.normal()
        for method in METHODS:
            prediction = tfbbb.predictive(
                model,
                x,
                likelihood=likelihood,
                method=method,
                num_samples=400,
                seed=simulation,
            )
            transforms[method].append(prediction.cdf(y[:, np.newaxis]).item())
            drawn = prediction.joint_sample(DRAWS)[:, 0, 0]
            ranks[method].append(np.sum(drawn < truth))
    return transforms, ranks


@pytest.mark.parametrize("method", METHODS)
def test_new_targets_are_uniform_under_the_predictive_distribution(simulated, method):
    transforms = np.array(simulated[0][method])
    assert stats.kstest(transforms, "uniform").pvalue > 0.01
    # Too narrow or too wide a prediction shows in the spread of the transforms.
    counts = np.histogram(transforms, bins=10, range=(0.0, 1.0))[0]
    assert stats.chisquare(counts).pvalue > 0.01


@pytest.mark.parametrize("method", METHODS)
def test_true_functions_have_uniform_ranks_among_those_that_are_drawn(
    simulated, method
):
    counts = np.bincount(simulated[1][method], minlength=DRAWS + 1)
    assert stats.chisquare(counts).pvalue > 0.01


def test_ranks_tell_a_posterior_that_is_too_narrow(simulated):
    # What the tests above would see of variances that are half of the right ones.
    widened = stats.norm.cdf(np.sqrt(2.0) * stats.norm.ppf(simulated[0]["local"]))
    counts = np.histogram(widened, bins=10, range=(0.0, 1.0))[0]
    assert stats.chisquare(counts).pvalue < 1e-4
