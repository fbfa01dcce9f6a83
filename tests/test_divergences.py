import itertools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from scipy import integrate, stats

from tfbbb import priors
from tfbbb.divergences import closed_form_of, kl_divergence
from tfbbb.layers import DenseVariational


def kernel_of(prior, shape=(4, 3), scale_shift=-1.0):
    layer = DenseVariational(shape[1], prior=prior, kl_weight=1.0)
    layer.build((None, shape[0]))
    generator = np.random.default_rng(0)
    layer.kernel.variables["mean"].assign(generator.normal(size=shape))
    layer.kernel.variables["log_scale"].assign(
        0.5 * generator.normal(size=shape) + scale_shift
    )
    return layer.kernel


@pytest.mark.parametrize("scale", ["fan_in", 0.3])
def test_closed_form_of_normal_from_normal_agrees_with_tfp(scale):
    kernel = kernel_of(priors.Normal(scale))
    assert closed_form_of(kernel) is not None
    prior = tfp.distributions.Normal(0.0, 0.5 if scale == "fan_in" else scale)
    exact = tfp.distributions.kl_divergence(
        tfp.distributions.Normal(kernel.mean, kernel.stddev), prior
    )
    np.testing.assert_allclose(
        kl_divergence(kernel, draw=None), np.sum(exact), rtol=1e-5
    )


def test_divergence_is_zero_where_the_posterior_is_the_prior():
    kernel = kernel_of(priors.Normal(0.5))
    kernel.variables["mean"].assign(np.zeros((4, 3)))
    kernel.variables["log_scale"].assign(np.full((4, 3), np.log(0.5)))
    assert abs(float(kl_divergence(kernel, draw=None))) < 1e-5


def exact_divergence_from_mixture(mean, scale, prior):
    """Integrates q log(q / p), cut where the integrand bends: at both components."""

    def log_prior(w):
        return np.logaddexp(
            np.log(prior.pi) + stats.norm.logpdf(w, scale=prior.scale1),
            np.log1p(-prior.pi) + stats.norm.logpdf(w, scale=prior.scale2),
        )

    def integrand(w):
        q = stats.norm(mean, scale)
        return q.pdf(w) * (q.logpdf(w) - log_prior(w))

    low, high = mean - 12 * scale, mean + 12 * scale
    bends = np.clip([-8 * prior.scale2, 0.0, 8 * prior.scale2, mean], low, high)
    edges = np.unique([low, *bends, high])
    return sum(
        integrate.quad(integrand, a, b, limit=200)[0]
        for a, b in itertools.pairwise(edges)
    )


@pytest.mark.parametrize("scale_shift", [-1.0, -3.0])
def test_estimate_from_a_scale_mixture_is_unbiased(scale_shift):
    prior = priors.ScaleMixtureNormal(pi=0.5, scale1=1.0, scale2=np.exp(-6.0))
    kernel = kernel_of(prior, shape=(3, 2), scale_shift=scale_shift)
    assert closed_form_of(kernel) is None
    exact = sum(
        exact_divergence_from_mixture(mean, scale, prior)
        for mean, scale in zip(
            np.ravel(kernel.mean), np.ravel(kernel.stddev), strict=True
        )
    )

    @tf.function
    def estimate(seed):
        return kl_divergence(kernel, draw=lambda: kernel.draw([0, seed]))

    estimates = np.array([estimate(seed) for seed in tf.range(4000)])
    # 4.5 standard errors are exceeded by chance in one of 150 000 runs.
    error = estimates.std() / np.sqrt(len(estimates))
    assert abs(estimates.mean() - exact) < 4.5 * error
