"""KL divergence of the default posterior from the default prior, made fast."""

from __future__ import annotations

from typing import cast

from tfbbb.base.lazy import tf
from tfbbb.base.private_apis import custom_gradient
from tfbbb.base.types import Tensor
from tfbbb.bayes import posteriors, priors
from tfbbb.bayes.divergences.kl_divergence import register_kl
from tfbbb.bayes.posteriors.normal_posterior import NORMAL_ENTROPY
from tfbbb.bayes.posteriors.posterior import Sizes, sum_over_weights
from tfbbb.bayes.variational_weight import VariationalWeight


@register_kl(posteriors.MeanFieldNormal, priors.Normal)
def _mean_field_from_normal(weight: VariationalWeight) -> Tensor:
    # sum_i [log(s / sigma_i) + (sigma_i^2 + mu_i^2) / (2 s^2) - 1/2]
    prior = cast(priors.Normal, weight.prior)
    squares, log_scales = _sums(
        weight.mean, weight.parameters["log_scale"], weight.variance, weight.shape
    )
    expected_log_prob = prior.log_prob_of_squares(
        prior.parameters(weight), squares, weight.shape, weight.fan_in
    )
    return -log_scales - weight.size * NORMAL_ENTROPY - expected_log_prob


def _sums(
    mean: Tensor, log_scale: Tensor, variance: Tensor, shape: Sizes
) -> tuple[Tensor, Tensor]:
    """Returns `sum(mean^2 + variance)` and `sum(log_scale)` over the weights.

    The gradient in the variance, `exp(2 log_scale)`, is computed directly in the log
    scale: TensorFlow's own gradient takes three times as many passes over the weights.
    """

    @custom_gradient
    def sums(mean: Tensor, log_scale: Tensor) -> Tensor:
        squares = sum_over_weights(variance, shape)
        if len(mean.shape) == len(shape):
            # Avoids a pass that writes the squares.
            squares += 2.0 * tf.nn.l2_loss(mean)
        else:
            squares += sum_over_weights(tf.square(mean), shape)

        def gradient(
            of_squares: Tensor, of_log_scales: Tensor
        ) -> tuple[Tensor, Tensor]:
            ones = [1] * len(shape)
            for_all = tf.concat([tf.shape(of_squares), ones], 0)
            twice = tf.reshape(2.0 * of_squares, for_all)
            constant = tf.reshape(of_log_scales, for_all)
            return twice * mean, twice * variance + constant

        return (squares, sum_over_weights(log_scale, shape)), gradient

    return sums(mean, log_scale)
