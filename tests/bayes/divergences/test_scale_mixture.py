"""The estimate of the divergence from a mixture of two normals."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from tests.variational_weights import member_of, variational_weight
from tfbbb import priors
from tfbbb.bayes.divergences import closed_form_of, is_log_ratio, kl_divergence

MIXTURES = [
    priors.ScaleMixtureNormal(0.5, 1.0, np.exp(-8.0)),
    priors.ScaleMixtureNormal(0.75, np.exp(-3.0), 1.0),
    priors.ScaleMixtureNormal(0.95, 1.0, 0.5),
]
mixtures = pytest.mark.parametrize("prior", MIXTURES, ids=repr)
MEANS = (0.0, 1e-3, 0.02, 0.3, 5.0)
SCALES = (1e-4, 1e-3, 0.01, 0.05, 0.3, 1.0, 10.0)
REGIMES = np.array(list(itertools.product(MEANS, SCALES)))


legendre = functools.cache(special.roots_legendre)


def exact_divergence(mean, scale, prior, nodes=60):
    """Integrates q log(q / p), cut where the integrand bends: at both components."""

    def log_normal(w, scale):
        return -0.5 * (w / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)

    def log_prior(w):
        return np.logaddexp(
            np.log(prior.pi) + log_normal(w, prior.scale1),
            np.log1p(-prior.pi) + log_normal(w, prior.scale2),
        )

    def integrand(w):
        log_q = log_normal(w - mean, scale)
        return np.exp(log_q) * (log_q - log_prior(w))

    low, high = mean - 12 * scale, mean + 12 * scale
    narrow = min(prior.scale1, prior.scale2)
    bends = [mean + k * scale for k in (-4, 0, 4)] + [
        k * narrow for k in range(-8, 9, 2)
    ]
    edges = np.unique([low, *np.clip(bends, low, high), high])
    places, place_weights = legendre(nodes)
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    values = integrand(half[:, np.newaxis] * places + middle[:, np.newaxis])
    return np.sum(half * (values @ place_weights))


def weight_of_regimes(prior):
    """Returns a weight with one entry for every mean and scale."""
    weight = variational_weight(prior=prior, shape=(len(REGIMES),))
    weight.variables["mean"].assign(REGIMES[:, 0])
    weight.variables["log_scale"].assign(np.log(REGIMES[:, 1]))
    return weight


def estimates_by_entry(weight, samples):
    """Returns estimates, [samples, entries], and their gradients in both parameters."""
    mean, log_scale = (
        tf.repeat(v.value[tf.newaxis], samples, axis=0)
        for v in weight.variables.values()
    )
    noise = weight.noise(tf.constant([0, 1]), samples)
    with tf.GradientTape() as tape:
        tape.watch([mean, log_scale])
        # A shape without axes leaves the sum over the weights out.
        expected = weight.prior.estimated_expected_log_prob(
            mean, tf.exp(2.0 * log_scale), noise, ()
        )
        divergence = -log_scale - 0.5 * np.log(2 * np.pi * np.e) - expected
    return (
        np.asarray(v, np.float64)
        for v in (divergence, *tape.gradient(divergence, [mean, log_scale]))
    )


@mixtures
def test_estimate_is_unbiased_however_sharp_the_mixture_and_the_posterior(prior):
    samples = 20_000
    estimates, _, _ = estimates_by_entry(weight_of_regimes(prior), samples)
    exact = np.array([exact_divergence(*regime, prior) for regime in REGIMES])
    error = estimates.std(axis=0) / np.sqrt(samples)
    # 35 regimes of 3 mixtures: 5 standard errors; and the rounding of float32.
    deviation = np.abs(estimates.mean(axis=0) - exact)
    assert (deviation < 5 * error + 1e-5 * np.maximum(1, np.abs(exact))).all()


@mixtures
def test_gradient_is_unbiased_in_all_regimes(prior):
    samples = 20_000
    _, *gradients = estimates_by_entry(weight_of_regimes(prior), samples)
    step = 1e-3
    for parameter, gradient in enumerate(gradients):
        # In units of a standard deviation, a step is as good in the mean as in its log.
        unit = REGIMES[:, 1] if parameter == 0 else 1.0
        sides = []
        for sign in (1, -1):
            moved = REGIMES.copy()
            if parameter == 0:
                moved[:, 0] += sign * step * REGIMES[:, 1]
            else:
                moved[:, 1] *= np.exp(sign * step)
            sides.append([exact_divergence(*regime, prior) for regime in moved])
        exact = (np.array(sides[0]) - np.array(sides[1])) / (2 * step)
        mean = (gradient * np.reshape(unit, (1, -1))).mean(axis=0)
        error = (gradient * unit).std(axis=0) / np.sqrt(samples)
        deviation = np.abs(mean - exact)
        # Differences are good to the square of the step.
        assert (deviation < 5 * error + 1e-4 * np.maximum(1, np.abs(exact))).all()


@mixtures
def test_gradient_varies_nowhere_more_than_that_of_the_log_ratio(prior):
    samples = 20_000
    weight = weight_of_regimes(prior)
    _, *gradients = estimates_by_entry(weight, samples)
    mean, scale = REGIMES.T
    # The same draws for both, so that rare ones come to both or to neither.
    noise = np.asarray(weight.noise(tf.constant([0, 1]), samples), np.float64)
    draws = mean + scale * noise
    components = np.stack(
        [
            np.log(share) + stats.norm.logpdf(draws, scale=s)
            for share, s in ((prior.pi, prior.scale1), (1 - prior.pi, prior.scale2))
        ]
    )
    squared_scales = np.reshape([prior.scale1**2, prior.scale2**2], (2, 1, 1))
    responsibilities = special.softmax(components, axis=0)
    slope = draws * np.sum(responsibilities / squared_scales, axis=0)
    of_log_ratio = (scale * slope, scale * slope * noise - 1)
    of_estimate = (scale * gradients[0], gradients[1])
    for plain, ours in zip(of_log_ratio, of_estimate, strict=True):
        # A standard deviation has a relative error of some percent here; in units of
        # that of q, a gradient of 1e-6 is rounding.
        assert (ours.std(axis=0) < 1.1 * plain.std(axis=0) + 1e-6).all()
        ratios = ours.var(axis=0) / np.maximum(plain.var(axis=0), 1e-12)
        assert np.median(ratios) < 0.05


def test_estimate_is_that_of_the_drawn_weights():
    weight = variational_weight(prior="scale_mixture_normal", members=2)
    assert closed_form_of(weight) is None
    assert not is_log_ratio(weight)
    draws = weight.draw(tf.constant([0, 2]), samples=3)
    estimates = kl_divergence(weight, lambda: draws)
    assert estimates.shape == (6,)
    for k in range(2):
        member, of_member = member_of(weight, k), slice(3 * k, 3 * k + 3)
        alone = kl_divergence(member, lambda of=of_member: draws[of])
        np.testing.assert_allclose(estimates[of_member], alone, rtol=1e-5)


@pytest.mark.parametrize("family", ["low_rank_normal", "full_covariance_normal"])
def test_estimate_of_correlated_weights_is_unbiased(family):
    prior = priors.ScaleMixtureNormal(0.5, 1.0, 0.1)
    weight = variational_weight(family, prior)
    draws = weight.draw(tf.constant([0, 4]), samples=20_000)
    estimates = np.asarray(kl_divergence(weight, lambda: draws))
    ratios = np.asarray(weight.log_prob(draws) - weight.prior_log_prob(draws))
    difference = estimates - ratios
    error = difference.std() / np.sqrt(len(difference))
    assert abs(difference.mean()) < 4.5 * error
