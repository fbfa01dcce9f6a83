"""The second derivatives of -log p(w) of a weight's prior."""

import math

import numpy as np
import tensorflow as tf

from tfbbb.bayes import posteriors, priors
from tfbbb.bayes.variational_weight import VariationalWeight


def prior_curvature(weight: VariationalWeight, mean: np.ndarray) -> np.ndarray:
    """Returns `-d^2 log p(w) / dw_i^2` at the mean, [size], float64.

    Args:
        weight: The weight, with a prior that is independent weight by weight.
        mean: The mean, [size], float64.
    """
    if isinstance(weight.prior, priors.Normal):
        return np.full(weight.size, math.exp(-2.0 * normal_log_scale(weight)))
    if not _is_independent(weight):
        raise ValueError(
            f"The prior of '{weight.name}' has no second derivatives weight by weight "
            "(a Laplace prior has a kink; hierarchical priors couple the weights). "
            "Choose the precision of a normal prior, such as "
            '`prior_precision="marginal_likelihood"`, or give the layers the prior '
            '"normal", "student_t" or "scale_mixture_normal". '
            f"Received: prior={weight.prior!r}, prior_precision=None"
        )
    values = tf.constant(mean.reshape((1, *weight.shape)), tf.float32)
    with tf.GradientTape() as outer:
        outer.watch(values)
        with tf.GradientTape() as inner:
            inner.watch(values)
            loss = -tf.reduce_sum(weight.prior_log_prob(values))
        total = tf.reduce_sum(inner.gradient(loss, values))
    return outer.gradient(total, values).numpy().astype(np.float64).ravel()


def log_prior(weight: VariationalWeight, mean: np.ndarray) -> float:
    """Returns log p(w) at the mean, in nats; in float64 for normal priors."""
    if isinstance(weight.prior, priors.Normal):
        log_scale = normal_log_scale(weight)
        squares = float(mean @ mean) * math.exp(-2.0 * log_scale)
        constant = log_scale + 0.5 * math.log(2.0 * math.pi)
        return -0.5 * squares - weight.size * constant
    values = tf.constant(mean.reshape((1, *weight.shape)), tf.float32)
    return float(tf.reduce_sum(weight.prior_log_prob(values)))


def normal_log_scale(weight: VariationalWeight) -> float:
    """Returns log s of a weight with the prior `Normal`."""
    prior = weight.prior
    assert isinstance(prior, priors.Normal)
    if prior.trainable:
        return float(weight.prior_parameters["log_scale"])
    return math.log(prior.scale_for(weight.fan_in))


def _is_independent(weight: VariationalWeight) -> bool:
    if isinstance(weight.prior, priors.FromPosterior):
        family, _ = weight.prior.posterior(weight.prior.parameters(weight))
        return isinstance(family, posteriors.MeanFieldNormal)
    return isinstance(weight.prior, priors.StudentT | priors.ScaleMixtureNormal)
