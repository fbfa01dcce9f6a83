"""KL divergences from priors whose E[log p(w)] depends only on the marginals of q."""

from __future__ import annotations

from typing import cast

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes import priors
from tfbbb.bayes.divergences.kl_divergence import register_estimate, register_kl
from tfbbb.bayes.divergences.normal_posteriors import NORMAL_POSTERIORS, entropy_of
from tfbbb.bayes.variational_weight import VariationalWeight


@register_kl(
    NORMAL_POSTERIORS,
    (
        priors.EmpiricalNormal,
        priors.GammaNormal,
        priors.Horseshoe,
        priors.Laplace,
        priors.Normal,
    ),
)
def _from_factorised(weight: VariationalWeight) -> Tensor:
    # -H(q) - E_q[log p(w)], where the latter depends on q by its marginals alone.
    assert weight.prior is not None
    expected_log_prob = weight.prior.expected_log_prob(
        weight.prior.parameters(weight),
        weight.mean,
        weight.variance,
        weight.shape,
        weight.fan_in,
    )
    return -entropy_of(weight) - expected_log_prob


@register_estimate(NORMAL_POSTERIORS, priors.ScaleMixtureNormal)
def _from_scale_mixture(weight: VariationalWeight, weights: Tensor) -> Tensor:
    prior = cast(priors.ScaleMixtureNormal, weight.prior)
    mean, variance, entropy = weight.mean, weight.variance, entropy_of(weight)
    if weight.members > 1:
        samples = tf.shape(weights)[0] // weight.members
        mean, variance, entropy = (
            tf.repeat(value, samples, axis=0) for value in (mean, variance, entropy)
        )
    # The draws as noise, whether or not they carry a gradient.
    noise = tf.stop_gradient((weights - mean) * tf.math.rsqrt(variance))
    expected = prior.estimated_expected_log_prob(mean, variance, noise, weight.shape)
    return -entropy - expected
