"""KL divergences registered in TensorFlow Probability."""

from __future__ import annotations

from typing import cast

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes import posteriors, priors
from tfbbb.bayes.divergences.kl_divergence import register_kl
from tfbbb.bayes.posteriors.posterior import sum_over_weights
from tfbbb.bayes.variational_weight import VariationalWeight


def _tfp_distributions(weight: VariationalWeight) -> tuple[Tensor, Tensor]:
    """Returns q and p as distributions of TFP, where both can be."""
    import tensorflow_probability as tfp

    posterior, prior = weight.posterior, weight.prior
    q = tfp.distributions.Normal(weight.mean, weight.stddev)
    if isinstance(posterior, posteriors.TFPDistribution):
        q = posterior.distribution(weight.parameters)
    if isinstance(prior, priors.TFPDistribution):
        return q, prior.distribution(weight.shape, weight.fan_in)
    if isinstance(prior, priors.Laplace):
        return q, tfp.distributions.Laplace(0.0, prior.scale_for(weight.fan_in))
    prior = cast(priors.Normal, prior)
    log_scale = tf.convert_to_tensor(
        prior.log_scale(weight.prior_parameters, weight.fan_in)
    )
    for _ in weight.shape:
        log_scale = log_scale[..., tf.newaxis]
    return q, tfp.distributions.Normal(0.0, tf.exp(log_scale))


def _is_known_to_tfp(weight: VariationalWeight) -> bool:
    try:
        _through_tfp(weight)
    except NotImplementedError:
        return False
    return True


@register_kl(
    posteriors.TFPDistribution,
    (priors.Laplace, priors.Normal, priors.TFPDistribution),
    covers=_is_known_to_tfp,
)
@register_kl(
    posteriors.MeanFieldNormal, priors.TFPDistribution, covers=_is_known_to_tfp
)
def _through_tfp(weight: VariationalWeight) -> Tensor:
    import tensorflow_probability as tfp

    q, p = _tfp_distributions(weight)
    divergences = tfp.distributions.kl_divergence(q, p)
    batch_axes = weight.shape[: len(weight.shape) - len(q.event_shape)]
    return sum_over_weights(divergences, batch_axes)
