"""Terms that replace the KL divergence for posteriors without a density."""

from __future__ import annotations

from typing import cast

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes import posteriors, priors
from tfbbb.bayes.divergences.kl_divergence import register_kl
from tfbbb.bayes.variational_weight import VariationalWeight


@register_kl(posteriors.Point, type(None))
def _maximum_likelihood(weight: VariationalWeight) -> Tensor:
    return tf.zeros([weight.members] if weight.members > 1 else [])


@register_kl(posteriors.Point, priors.Prior)
def _maximum_a_posteriori(weight: VariationalWeight) -> Tensor:
    return -weight.prior_log_prob(weight.mean)


@register_kl(posteriors.Rank1, priors.Prior)
def _rank_1(weight: VariationalWeight) -> Tensor:
    posterior = cast(posteriors.Rank1, weight.posterior)
    parameters = weight.parameters
    factor_divergence = posterior.factor_divergence(parameters, weight.shape)
    return factor_divergence - weight.prior_log_prob(parameters["weights"])
