"""Poisson and negative binomial distributions against SciPy and sums."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from tfbbb.bayes.likelihoods import count_distribution

GENERATOR = np.random.default_rng(0)
MEANS = [1e-3, 0.1, 1.0, 10.0, 1e3, 1e5, 1e8, 1e12]
CONCENTRATIONS = [1e-4, 1e-2, 0.5, 1.0, 2.0, 10.0, 100.0, 1e4, 1e6, 1e8]


def doubles(*values):
    together = np.broadcast_arrays(*values)
    return [tf.constant(value, tf.float64) for value in together]


def poisson(rate):
    return doubles(rate, np.log(rate))


def negative_binomial(mean, concentration):
    return doubles(mean, np.log(mean), concentration)


def counts_around(mean, deviation):
    """Counts up to four standard deviations off, the bulk and 0."""
    generator = np.random.default_rng(0)
    spread = mean + deviation * generator.uniform(-4.0, 4.0, size=200)
    return np.unique(np.floor(np.maximum(spread, 0.0)))


@pytest.mark.parametrize("rate", MEANS)
def test_poisson_distribution_function_is_the_incomplete_gamma_function(rate):
    counts = counts_around(rate, np.sqrt(rate))
    found = count_distribution.cumulative(
        *doubles(counts), *poisson(np.full(len(counts), rate))
    )
    # Both are off by rounding the rate, 1e-16 of it, times the mass.
    rounding = 4e-16 * rate / np.sqrt(1.0 + rate)
    np.testing.assert_allclose(
        found, special.gammaincc(counts + 1.0, rate), rtol=0, atol=2e-13 + rounding
    )


@pytest.mark.parametrize("mean", MEANS[:7])
def test_negative_binomial_distribution_function_is_the_incomplete_beta_function(mean):
    concentration = np.array(CONCENTRATIONS)[:, np.newaxis]
    deviation = np.sqrt(mean + mean**2 / concentration)
    spread = mean + deviation * GENERATOR.uniform(-4.0, 4.0, size=(10, 100))
    counts = np.floor(np.maximum(spread, 0.0))
    success, failure = concentration, mean
    # The smaller of the two probabilities has all of its digits.
    expected = np.where(
        failure < success,
        special.betaincc(counts + 1.0, concentration, failure / (success + failure)),
        special.betainc(concentration, counts + 1.0, success / (success + failure)),
    )
    found = count_distribution.cumulative(
        *doubles(counts), *negative_binomial(np.full((10, 1), mean), concentration)
    )
    # SciPy itself is 2e-9 off where counts are of this size: see the next test.
    tolerance = 5e-9 if mean > 1e6 else 3e-12
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("mean", "concentration"), [(1e4, None), (1e8, None), (1e6, 3.0), (1e8, 1e7)]
)
def test_single_precision_keeps_the_log_mass_of_large_counts(mean, concentration):
    deviation = np.sqrt(mean + (mean**2 / concentration if concentration else 0.0))
    counts = counts_around(mean, deviation).astype(np.float32).astype(np.float64)
    distribution = (
        poisson(np.full(len(counts), mean))
        if concentration is None
        else negative_binomial(np.full(len(counts), mean), concentration)
    )
    single = [tf.cast(value, tf.float32) for value in distribution]
    rounded = [tf.cast(value, tf.float64) for value in single]
    expected = count_distribution.log_mass(*doubles(counts), *rounded)
    found = count_distribution.log_mass(tf.cast(counts, tf.float32), *single)
    # Eight roundings of the largest terms, which are 4 sqrt(mean) in size.
    atol = 8.0 * 6e-8 * 4.0 * np.sqrt(mean)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=atol)
