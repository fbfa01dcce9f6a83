import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from tfbbb.bayes.likelihoods.integer_bisection import bracket_of_counts, least_integer

GENERATOR = np.random.default_rng(0)


def test_the_least_integer_is_found_for_every_element():
    wanted = np.floor(10.0 ** GENERATOR.uniform(0, 15, size=300))
    below = wanted - np.floor(GENERATOR.uniform(1, 1000, size=300))
    enough = wanted + np.floor(GENERATOR.uniform(0, 1e9, size=300))
    found = least_integer(
        lambda values: values >= wanted, tf.constant(below), tf.constant(enough)
    )
    np.testing.assert_array_equal(found, wanted)


def test_nan_ends_the_search():
    found = least_integer(
        lambda values: values >= 2.0,
        tf.constant([np.nan, -1.0], tf.float64),
        tf.constant([np.nan, 9.0], tf.float64),
    )
    np.testing.assert_array_equal(found, [np.nan, 2.0])


@pytest.mark.parametrize(
    "counts",
    [
        stats.poisson(0.01),
        stats.poisson(40.0),
        stats.nbinom(0.2, 0.001),
        # All of Cantelli's inequality: two points.
        stats.binom(1, 0.3),
        stats.binom(7, 1.0),
    ],
    ids=["rare", "poisson", "heavy tail", "two points", "one point"],
)
def test_quantiles_of_counts_lie_within_the_bracket(counts):
    levels = np.concatenate([[1e-12, 0.3, 0.7, 1 - 1e-12], GENERATOR.uniform(size=200)])
    below, enough = bracket_of_counts(
        tf.constant(levels),
        tf.constant(counts.mean(), tf.float64),
        tf.constant(counts.var(), tf.float64),
    )
    assert np.all(counts.cdf(below) < levels)
    assert np.all(counts.cdf(enough) >= levels)
