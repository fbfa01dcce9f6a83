"""KL divergence of a normal posterior from the posterior of a trained model."""

from __future__ import annotations

from typing import cast

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes import posteriors, priors
from tfbbb.bayes.divergences.kl_divergence import register_kl
from tfbbb.bayes.divergences.normal_posteriors import NORMAL_POSTERIORS, entropy_of
from tfbbb.bayes.posteriors.posterior import flatten_weights
from tfbbb.bayes.variational_weight import VariationalWeight


def _trained_posterior(weight: VariationalWeight) -> tuple[Tensor, Tensor]:
    prior = cast(priors.FromPosterior, weight.prior)
    return prior.posterior(prior.parameters(weight))


def _is_trained_normal(weight: VariationalWeight) -> bool:
    family, _ = _trained_posterior(weight)
    if type(family) is posteriors.MeanFieldNormal:
        return True
    return type(family) is posteriors.FullCovarianceNormal and isinstance(
        weight.posterior, posteriors.FullCovarianceNormal | posteriors.MeanFieldNormal
    )


@register_kl(NORMAL_POSTERIORS, priors.FromPosterior, covers=_is_trained_normal)
def _from_trained_normal(weight: VariationalWeight) -> Tensor:
    # E_q[log p(w)] = log p(E_q[w]) - trace(precision of p, covariance of q) / 2
    family, trained = _trained_posterior(weight)
    if type(family) is posteriors.MeanFieldNormal:
        trace = weight.sum(weight.variance * tf.exp(-2.0 * trained["log_scale"]))
    else:
        precision_root = family.scale_tril(trained)
        if isinstance(weight.posterior, posteriors.FullCovarianceNormal):
            root = weight.posterior.scale_tril(weight.parameters)
        else:
            flat = flatten_weights(weight.stddev, weight.shape)
            root = tf.linalg.diag(flat)
        ratio = tf.linalg.triangular_solve(precision_root, root)
        trace = tf.reduce_sum(tf.square(ratio), axis=(-2, -1))
    at_mean = family.log_prob(trained, weight.mean, weight.shape)
    return 0.5 * trace - at_mean - entropy_of(weight)
