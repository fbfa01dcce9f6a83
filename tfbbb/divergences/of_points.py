"""Terms that replace the KL divergence for posteriors without a density."""

from typing import cast

import tensorflow as tf

from tfbbb import posteriors, priors
from tfbbb.divergences.kl_divergence import register_kl
from tfbbb.types import Tensor
from tfbbb.variational_weight import VariationalWeight


@register_kl(posteriors.Point, type(None))
def _of_maximum_likelihood(weight: VariationalWeight) -> Tensor:
    return tf.zeros([weight.members] if weight.members > 1 else [])


@register_kl(posteriors.Point, priors.Prior)
def _of_point(weight: VariationalWeight) -> Tensor:
    return -weight.prior_log_prob(weight.mean)


@register_kl(posteriors.Rank1, priors.Prior)
def _of_rank_1(weight: VariationalWeight) -> Tensor:
    posterior = cast(posteriors.Rank1, weight.posterior)
    parameters = weight.parameters
    of_factors = posterior.factor_divergence(parameters, weight.shape)
    return of_factors - weight.prior_log_prob(parameters["weights"])
