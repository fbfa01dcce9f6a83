"""Closed forms of normal posteriors, against TFP, quadrature and draws."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from scipy import integrate, optimize, stats

from tests.variational_weights import finite_differences, member_of, variational_weight
from tfbbb import posteriors, priors
from tfbbb.bayes.divergences import closed_form_of, kl_divergence

FAMILIES = [
    posteriors.MeanFieldNormal(),
    posteriors.LowRankNormal(rank=2),
    posteriors.FullCovarianceNormal(),
    posteriors.MatrixNormal("full"),
]
PRIORS = [
    priors.Normal("fan_in"),
    priors.Normal(0.3, trainable=True),
    priors.EmpiricalNormal(),
    priors.Laplace(0.3),
    priors.GammaNormal(3.0, 2.0),
    priors.Horseshoe(0.3),
]
families = pytest.mark.parametrize("family", FAMILIES, ids=repr)
# Each prior with a family, and the pair that has a form of its own.
pairs = pytest.mark.parametrize(
    ("family", "prior"),
    [
        (FAMILIES[0], PRIORS[1]),
        *((FAMILIES[i % 4], prior) for i, prior in enumerate(PRIORS)),
    ],
    ids=repr,
)


@families
@pytest.mark.parametrize("scale", ["fan_in", 0.3])
def test_divergence_from_a_normal_is_that_of_tfp(family, scale):
    weight = variational_weight(family, priors.Normal(scale), fan_in=4)
    # log p of the definition by TFP, and the entropy of scipy: see the families' tests.
    variance, mean = np.ravel(weight.variance), np.ravel(weight.mean)
    prior = tfp.distributions.Normal(0.0, 0.5 if scale == "fan_in" else scale)
    marginal = tfp.distributions.Normal(mean, np.sqrt(variance))
    exact = np.sum(tfp.distributions.kl_divergence(marginal, prior))
    # Correlations take entropy from the sum of the marginals'.
    lost = np.sum(marginal.entropy()) - family.entropy(weight.parameters, weight.shape)
    np.testing.assert_allclose(kl_divergence(weight, None), exact + lost, rtol=1e-5)


@pytest.mark.parametrize(("mean", "scale"), [(0.0, 1.0), (1e-3, 0.2), (5.0, 1e-4)])
def test_divergence_from_a_laplace_is_the_integral(mean, scale):
    weight = variational_weight(prior=priors.Laplace(0.3), shape=(1,))
    weight.variables["mean"].assign([mean])
    weight.variables["log_scale"].assign([np.log(scale)])
    q, p = stats.norm(mean, scale), stats.laplace(scale=0.3)
    exact = integrate.quad(
        lambda z: (
            stats.norm.pdf(z)
            * (q.logpdf(mean + scale * z) - p.logpdf(mean + scale * z))
        ),
        -12,
        12,
        points=[np.clip(-mean / scale, -12, 12)],
    )[0]
    np.testing.assert_allclose(kl_divergence(weight, None), exact, rtol=1e-5)


def test_divergence_from_a_gamma_normal_is_the_hierarchys_minimum():
    shape, rate = 3.0, 2.0
    weight = variational_weight(prior=priors.GammaNormal(shape, rate))
    prior = stats.gamma(shape, scale=1 / rate)
    square = float(np.sum(np.square(weight.mean) + weight.variance))
    entropy = float(weight.posterior.entropy(weight.parameters, weight.shape))

    def of_hierarchy(logs):
        """KL(q(w) q(lam) || p(w | lam) p(lam)), q(lam) by quadrature."""
        q = stats.gamma(np.exp(logs[0]), scale=np.exp(-logs[1]))
        precision = q.ppf((np.arange(4000) + 0.5) / 4000)
        log_prior = prior.logpdf(precision).mean()
        log_weights = 6 * np.mean(np.log(precision / (2 * np.pi)))
        log_weights -= 0.5 * square * precision.mean()
        return -entropy - q.entropy() - log_prior - log_weights

    best = optimize.minimize(of_hierarchy, x0=[2.0, 1.0], method="Nelder-Mead")
    # The mean over 4000 quantiles cuts the tails off: some 1e-3 of the variance.
    np.testing.assert_allclose(kl_divergence(weight, None), best.fun, atol=5e-3)


@pytest.mark.parametrize(
    "prior", [priors.GammaNormal(3.0, 2.0), priors.Horseshoe(0.3)], ids=repr
)
@pytest.mark.parametrize(("spread", "gap"), [(1.0, np.inf), (1e-3, 1e-3)])
def test_divergence_from_a_hierarchy_bounds_that_from_its_marginal(prior, spread, gap):
    # Jensen's inequality holds for any draws together with their own moments.
    draws = 1.0 + spread * np.random.default_rng(0).normal(size=(500, 4, 3))
    of_draws = np.mean(prior.log_prob({}, draws, (4, 3), 4))
    bound = prior.expected_log_prob({}, draws.mean(0), draws.var(0), (4, 3), 4)
    assert 0 < of_draws - bound < gap


def test_expectation_under_a_horseshoe_is_the_density_at_the_mean_square():
    prior, mean, deviation = priors.Horseshoe(0.3), np.float32([[0.4]]), 0.3
    expected = prior.log_prob({}, np.hypot(mean, deviation), (1, 1), 4)
    found = prior.expected_log_prob({}, mean, np.full_like(mean, 0.09), (1, 1), 4)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pairs
def test_gradients_are_the_finite_differences(family, prior):
    weight = variational_weight(family, prior, shape=(5, 2), dtype="float64")
    values = [variable.value for variable in weight.variables.values()]
    with tf.GradientTape() as tape:
        tape.watch(values)
        divergence = kl_divergence(weight, None)
    gradients = tape.gradient(divergence, values)
    expected = finite_differences(lambda weight: kl_divergence(weight, None), weight)
    # The exponential integral is approximated to 2e-7; all else is float64.
    tolerance = 1e-4 if isinstance(prior, priors.Horseshoe) else 1e-6
    for gradient, slope in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, slope, rtol=tolerance, atol=tolerance)


@pairs
def test_members_are_a_loop_over_single_weights(family, prior):
    weight = variational_weight(family, prior, members=3)
    assert closed_form_of(weight) is not None
    divergences = kl_divergence(weight, None)
    assert divergences.shape == (3,)
    for k, divergence in enumerate(divergences):
        alone = kl_divergence(member_of(weight, k), None)
        np.testing.assert_allclose(divergence, alone, rtol=1e-5)


def test_divergence_from_a_student_t_is_estimated_without_bias():
    weight = variational_weight(prior=priors.StudentT(3.0, 0.3), shape=(2, 2))
    assert closed_form_of(weight) is None
    exact = 0.0
    for mean, scale in zip(np.ravel(weight.mean), np.ravel(weight.stddev), strict=True):
        q, p = stats.norm(mean, scale), stats.t(3.0, scale=0.3)
        exact += integrate.quad(
            lambda w, q=q, p=p: q.pdf(w) * (q.logpdf(w) - p.logpdf(w)),
            mean - 12 * scale,
            mean + 12 * scale,
        )[0]
    estimates = np.asarray(
        kl_divergence(weight, lambda: weight.draw(tf.constant([0, 4]), 20_000))
    )
    error = estimates.std() / np.sqrt(len(estimates))
    assert abs(estimates.mean() - exact) < 4.5 * error
