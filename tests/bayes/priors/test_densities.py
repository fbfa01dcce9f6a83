"""Log densities of the priors that have no variables of their own."""

import itertools

import numpy as np
import pytest
from scipy import integrate, special, stats

from tfbbb import priors

WEIGHTS = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")


def log_prob(prior, weights, fan_in=4):
    return np.asarray(prior.log_prob({}, weights, weights.shape, fan_in))


@pytest.mark.parametrize(("scale", "expected"), [("fan_in", 0.5), (0.3, 0.3), (2, 2.0)])
@pytest.mark.parametrize(
    ("family", "exact"),
    [
        (priors.Normal, stats.norm),
        (priors.Laplace, stats.laplace),
        (lambda scale: priors.StudentT(df=3.0, scale=scale), stats.t(3.0)),
    ],
    ids=["normal", "laplace", "student_t"],
)
def test_log_prob_sums_the_log_density_of_its_scale(family, exact, scale, expected):
    densities = exact.logpdf(WEIGHTS / expected) - np.log(expected)
    np.testing.assert_allclose(
        log_prob(family(scale=scale), WEIGHTS), densities.sum(), rtol=1e-5
    )


def test_scale_mixture_normal_sums_the_log_density_of_the_mixture():
    exact = np.log(
        0.25 * stats.norm.pdf(WEIGHTS, scale=1.5)
        + 0.75 * stats.norm.pdf(WEIGHTS, scale=0.05)
    ).sum()
    for prior in (
        priors.ScaleMixtureNormal(pi=0.25, scale1=1.5, scale2=0.05),
        priors.ScaleMixtureNormal(pi=0.75, scale1=0.05, scale2=1.5),
    ):
        np.testing.assert_allclose(log_prob(prior, WEIGHTS), exact, rtol=1e-5)


def test_gamma_normal_is_a_multivariate_student_t():
    prior = priors.GammaNormal(shape=3.0, rate=2.0)
    # The scale of a Student-t with 2a degrees of freedom is b/a.
    exact = stats.multivariate_t(shape=np.eye(12) * 2.0 / 3.0, df=6.0)
    np.testing.assert_allclose(
        log_prob(prior, WEIGHTS), exact.logpdf(WEIGHTS.ravel()), rtol=1e-5
    )


@pytest.mark.parametrize("weight", [1e-3, 0.02, 0.5, 3.0, 40.0])
def test_horseshoe_integrates_the_half_cauchy_scales_out(weight):
    prior, scale = priors.Horseshoe(scale=0.3), 0.3

    def integrand(log_local):
        local = np.exp(log_local)
        normal = stats.norm.pdf(weight, scale=scale * local)
        return local * normal * stats.halfcauchy.pdf(local)

    edges = np.linspace(-40.0, 40.0, 21)
    exact = sum(integrate.quad(integrand, *e)[0] for e in itertools.pairwise(edges))
    # The approximation of E1 is good to 2e-7, and float32 to 1e-7 of each term.
    np.testing.assert_allclose(
        log_prob(prior, np.float32([weight])), np.log(exact), atol=2e-6
    )


def test_horseshoe_is_the_exponential_integral_far_out_in_both_tails():
    weights = np.logspace(-15, 15, 61)
    prior = priors.Horseshoe(scale=1.0)
    z = weights**2 / 2
    # exp(z) E1(z), by its asymptotic series where E1 itself underflows.
    far = np.minimum(1 / np.maximum(z, 1e2), 1e-2)
    asymptotic = far * (1 - far + 2 * far**2 - 6 * far**3)
    scaled = np.where(z < 100, np.exp(np.minimum(z, 100)) * special.exp1(z), asymptotic)
    exact = np.log(scaled) - 0.5 * np.log(2 * np.pi**3)
    each = [log_prob(prior, np.float32([w])) for w in weights]
    np.testing.assert_allclose(each, exact, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    "prior",
    [
        priors.Normal(),
        priors.Laplace(),
        priors.StudentT(),
        priors.Horseshoe(),
        priors.GammaNormal(),
        priors.ScaleMixtureNormal(),
    ],
    ids=repr,
)
def test_leading_axes_are_a_loop(prior):
    weights = np.random.default_rng(1).normal(size=(2, 3, 4, 3)).astype("float32")
    densities = prior.log_prob({}, weights, (4, 3), 4)
    assert densities.shape == (2, 3)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(
            densities[index], log_prob(prior, weights[index]), rtol=1e-6
        )
