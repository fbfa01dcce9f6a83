"""Mixtures of likelihoods against NumPy and SciPy."""

import numpy as np
import pytest
from scipy import special, stats

from tfbbb.bayes.likelihoods import Normal
from tfbbb.prediction.mixture import Mixture

GENERATOR = np.random.default_rng(0)
ROWS, SAMPLES = 5, 30


def normal(num_targets=1):
    likelihood = Normal(heteroscedastic=True)
    likelihood.build((None, 2 * num_targets))
    likelihood.adapt(1000.0 + GENERATOR.normal(size=(50, num_targets)))
    return likelihood


def outputs(width, spread=1.0):
    return spread * GENERATOR.normal(size=(ROWS, SAMPLES, width))


def components(likelihood, values):
    """Returns the mixture's components as a frozen distribution of SciPy."""
    variance = likelihood.variance(values).numpy()
    return stats.norm(likelihood.mean(values).numpy(), np.sqrt(variance))


@pytest.mark.parametrize("num_targets", [1, 2])
def test_log_prob_is_the_log_of_the_average_density(num_targets):
    likelihood, values = normal(num_targets), outputs(2 * num_targets)
    # The second row is far out, where densities underflow and their logs do not.
    targets = 1000.0 + GENERATOR.normal(size=(ROWS, num_targets))
    targets[1] += 1000.0
    densities = components(likelihood, values).logpdf(targets[:, np.newaxis]).sum(-1)
    expected = special.logsumexp(densities, axis=1) - np.log(SAMPLES)
    np.testing.assert_allclose(
        Mixture(likelihood, values).log_prob(targets), expected, rtol=1e-9
    )
