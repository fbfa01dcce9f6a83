"""Summaries of draws against NumPy and SciPy."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from tfbbb.bayes.likelihoods import Categorical, Normal
from tfbbb.prediction.summary import summary

GENERATOR = np.random.default_rng(0)
ROWS, ROUNDS = 5, 15


def normal(num_targets=1):
    likelihood = Normal(heteroscedastic=True)
    likelihood.build((None, 2 * num_targets))
    likelihood.adapt(1000.0 + GENERATOR.normal(size=(50, num_targets)))
    return likelihood


def categorical(num_classes):
    likelihood = Categorical()
    likelihood.build((None, num_classes))
    return likelihood


def outputs(width, members=1, spread=1.0):
    """Returns [rows, rounds, 2, members, P]."""
    return spread * GENERATOR.normal(size=(ROWS, ROUNDS, 2, members, width))


def flat(values):
    return values.reshape(ROWS, -1, values.shape[-1])


@pytest.mark.parametrize(("members", "num_targets"), [(1, 2), (3, 1)])
def test_variance_is_that_of_the_mixture_and_comes_apart(num_targets, members):
    likelihood, values = normal(num_targets), outputs(2 * num_targets, members)
    found = summary(likelihood, flat(values), members)
    means = likelihood.mean(values).numpy()
    noise = likelihood.variance(values).numpy().mean(axis=(1, 2, 3))
    pairs = means.mean(axis=2)
    error = np.sqrt((stats.sem(pairs, axis=1) ** 2).mean(axis=1) / members)
    # What the draws vary by around their mean falls short by the error of that mean.
    epistemic = means.var(axis=(1, 2, 3)) + error**2
    np.testing.assert_allclose(found["mean"], means.mean(axis=(1, 2, 3)))
    np.testing.assert_allclose(found["mean_standard_error"], error)
    np.testing.assert_allclose(found["epistemic"], epistemic)
    np.testing.assert_allclose(found["aleatoric"], noise)
    np.testing.assert_allclose(found["variance"], epistemic + noise)


def test_epistemic_variance_is_unbiased_in_draws_that_mirror_each_other():
    # f(e) = e + e^2 / 2 at e and -e: variance 1 + 1/2, of the pairs' mean 1/2.
    likelihood = Normal(scale=1.0)
    likelihood.build((None, 1))
    noise = GENERATOR.normal(size=(20_000, 3, 1, 1, 1))
    both = np.concatenate([noise, -noise], axis=2)
    values = (both + both**2 / 2).reshape(20_000, 6, 1)
    found = summary(likelihood, values)
    epistemic = found["epistemic"].numpy()
    assert abs(epistemic.mean() - 1.5) < 4.0 * stats.sem(epistemic)[0]
    squared_error = found["mean_standard_error"].numpy() ** 2
    expected = values.mean(axis=1).var()
    assert abs(squared_error.mean() / expected - 1.0) < 0.05


def test_variance_between_members_is_unbiased():
    # Means -1, 0 and 1 of three members, with noise of variance 4 in every draw.
    likelihood = Normal(scale=1.0)
    likelihood.build((None, 1))
    rows = 20_000
    values = 2.0 * GENERATOR.normal(size=(rows, 20, 2, 3, 1))
    values += np.array([-1.0, 0.0, 1.0])[:, None]
    found = summary(likelihood, values.reshape(rows, -1, 1), 3)
    between = found["between_members"].numpy()
    # What is cut off at zero in unlucky rows is less than a part in a thousand.
    assert abs(between.mean() - 2.0 / 3.0) < 4.0 * stats.sem(between)[0] + 1e-3
    epistemic = found["epistemic"].numpy()
    assert abs(epistemic.mean() - (4.0 + 2.0 / 3.0)) < 4.0 * stats.sem(epistemic)[0]


def test_large_single_precision_means_keep_a_small_variance():
    likelihood = Normal(scale=1.0)
    likelihood.build((None, 1))
    likelihood.adapt([[1e5 - 1.0], [1e5 + 1.0]])
    values = outputs(1, spread=1e-3).astype(np.float32)
    found = summary(likelihood, flat(values))
    means = values.astype(np.float64)
    error = stats.sem(means.mean(axis=2), axis=1)[:, 0]
    expected = means.var(axis=(1, 2, 3)) + error**2
    np.testing.assert_allclose(found["epistemic"], expected, rtol=1e-6)


def test_variance_of_an_integrated_mean_is_epistemic():
    likelihood = Normal(scale=1.0)
    likelihood.build((None, 1))
    values = tf.constant(flat(outputs(1)))
    variance = tf.random.stateless_uniform(tf.shape(values), [0, 1], dtype=values.dtype)
    integrated = likelihood.with_location_variance(values, variance)
    found = summary(likelihood, integrated)
    without = summary(likelihood, values)
    more = found["epistemic"] - without["epistemic"]
    np.testing.assert_allclose(more, tf.reduce_mean(variance, axis=1))
    np.testing.assert_array_equal(found["aleatoric"], without["aleatoric"])


def test_information_is_finite_and_not_negative_where_classes_are_certain():
    certain = np.tile([[[1000.0, -1000.0]]], (1, 2 * ROUNDS, 1))
    found = summary(categorical(2), certain)
    assert found["entropy"].numpy().tolist() == [0.0]
    assert found["mutual_information"].numpy().tolist() == [0.0]
    # All disagreement and no noise: the information is that of a fair coin.
    certain[:, ::2] *= -1.0
    found = summary(categorical(2), certain)
    np.testing.assert_allclose(found["mutual_information"], [np.log(2.0)])
