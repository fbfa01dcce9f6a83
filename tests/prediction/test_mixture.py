"""Mixtures of likelihoods against NumPy and SciPy."""

import numpy as np
import pytest
from scipy import special, stats

from tfbbb.likelihoods import Categorical, Normal
from tfbbb.prediction import mixture

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
def test_moments_follow_the_law_of_total_variance(num_targets):
    likelihood, values = normal(num_targets), outputs(2 * num_targets)
    found = mixture.moments(likelihood, values)
    means, noise = likelihood.mean(values).numpy(), likelihood.variance(values).numpy()
    np.testing.assert_allclose(found["mean"], means.mean(axis=1))
    np.testing.assert_allclose(found["epistemic"], means.var(axis=1, ddof=1))
    np.testing.assert_allclose(found["aleatoric"], noise.mean(axis=1))
    np.testing.assert_allclose(
        found["variance"], means.var(axis=1, ddof=1) + noise.mean(axis=1)
    )
    np.testing.assert_allclose(
        found["mean_standard_error"], stats.sem(means, axis=1, ddof=1)
    )


def test_moments_of_single_precision_outputs_keep_a_small_variance_by_a_large_mean():
    likelihood = Normal(scale=1.0)
    likelihood.build((None, 1))
    likelihood.adapt([[1e5 - 1.0], [1e5 + 1.0]])
    values = outputs(1, spread=1e-3).astype(np.float32)
    np.testing.assert_allclose(
        mixture.moments(likelihood, values)["epistemic"],
        values.astype(np.float64).var(axis=1, ddof=1),
        rtol=1e-6,
    )


def test_information_splits_the_entropy_of_the_class():
    likelihood = Categorical()
    likelihood.build((None, 4))
    logits = outputs(4, spread=3.0)
    found = mixture.information(likelihood, logits)
    probabilities = special.softmax(logits, axis=-1)
    average = probabilities.mean(axis=1)
    entropy = stats.entropy(average, axis=-1)
    expected = stats.entropy(probabilities, axis=-1).mean(axis=1)
    np.testing.assert_allclose(found["probabilities"], average)
    np.testing.assert_allclose(found["entropy"], entropy)
    np.testing.assert_allclose(found["mutual_information"], entropy - expected)


def test_information_is_finite_and_not_negative_where_classes_are_certain():
    likelihood = Categorical()
    likelihood.build((None, 2))
    certain = np.tile([[[1000.0, -1000.0]]], (1, SAMPLES, 1))
    found = mixture.information(likelihood, certain)
    assert found["entropy"].numpy().tolist() == [0.0]
    assert found["mutual_information"].numpy().tolist() == [0.0]
    # All disagreement and no noise: the information is that of a fair coin.
    certain[:, ::2] *= -1.0
    found = mixture.information(likelihood, certain)
    np.testing.assert_allclose(found["mutual_information"], [np.log(2.0)])


@pytest.mark.parametrize("num_targets", [1, 2])
def test_log_prob_is_the_log_of_the_average_density_of_all_targets(num_targets):
    likelihood, values = normal(num_targets), outputs(2 * num_targets)
    # The second row is far out, where densities underflow and their logs do not.
    targets = 1000.0 + GENERATOR.normal(size=(ROWS, num_targets))
    targets[1] += 1000.0
    densities = components(likelihood, values).logpdf(targets[:, np.newaxis]).sum(-1)
    expected = special.logsumexp(densities, axis=1) - np.log(SAMPLES)
    np.testing.assert_allclose(
        mixture.log_prob(likelihood, targets, values), expected, rtol=1e-9
    )


def test_log_prob_of_classes_is_the_log_of_their_average_probability():
    likelihood = Categorical()
    likelihood.build((None, 4))
    logits, labels = outputs(4), np.array([0, 3, 1, 2, 2])
    average = special.softmax(logits, axis=-1).mean(axis=1)
    np.testing.assert_allclose(
        mixture.log_prob(likelihood, labels, logits),
        np.log(average[np.arange(ROWS), labels]),
    )
