"""The KL divergence of each single weight."""

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from tfbbb.bayes.divergences import closed_form_of
from tfbbb.bayes.divergences.closed_forms import entropy_of
from tfbbb.bayes.posteriors.normal_posterior import NORMAL_ENTROPY, NormalPosterior

if TYPE_CHECKING:
    from tfbbb.bayes.variational_weight import VariationalWeight


def weightwise_divergence(weight: "VariationalWeight") -> np.ndarray | None:
    """Returns KL(q_i || p_i) of each weight in nats, if both are normal.

    q_i is the marginal of a weight under q, which need not factorise; p factorises.

    The closed form gives only the sum over the weights. For `p_i = N(m_i, s_i^2)`, the
    derivatives of this sum with respect to the means are

        slope_i = (mean_i - m_i) / s_i^2,   curvature_i = 1 / s_i^2

    for any m and s, which gives, with `r_i = variance_i / s_i^2`,

        KL_i = (r_i + slope_i^2 / curvature_i - 1 - log r_i) / 2

    Only if p is such a normal do the KL_i add up to the closed form, less the entropy
    that q lacks because of correlations. This function uses that sum as a check.

    Returns:
        An array of the weight's shape (with members [members, *shape]); None if the
        weights are not normal under q and independent normals under p.
    """
    closed_form = closed_form_of(weight)
    if closed_form is None or not isinstance(weight.posterior, NormalPosterior):
        return None
    mean = weight.variables["mean"].value
    with tf.GradientTape() as second:
        second.watch(mean)
        with tf.GradientTape() as first:
            first.watch(mean)
            total = tf.reduce_sum(closed_form(weight))
        slope = first.gradient(total, mean)
    curvature = None if slope is None else second.gradient(slope, mean)
    if curvature is None:
        return None
    # Weights with K members multiply each of their derivatives by K.
    slope = np.asarray(slope, np.float64) / weight.members
    curvature = np.asarray(curvature, np.float64) / weight.members**2
    log_variance = _log_variance(weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.exp(log_variance) * curvature
        log_ratio = log_variance + np.log(curvature)
        divergence = 0.5 * (ratio + slope**2 / curvature - 1.0 - log_ratio)
    entropy = np.asarray(entropy_of(weight), np.float64).sum()
    of_marginals = 0.5 * log_variance.sum() + log_variance.size * NORMAL_ENTROPY
    total = float(total) - (of_marginals - entropy)
    # The tolerance allows for the float32 precision of the total.
    adds_up = np.isclose(divergence.sum(), total, rtol=1e-3, atol=1e-5 * ratio.size)
    return divergence if adds_up else None


def _log_variance(weight: "VariationalWeight") -> np.ndarray:
    if has_independent_normals(weight):
        # Finite also for removed weights, whose variance is 0 in single precision.
        log_scale = weight.variables["log_scale"].numpy()
        return 2.0 * np.asarray(log_scale, np.float64)
    return np.log(np.asarray(weight.variance, np.float64))


def has_independent_normals(weight: "VariationalWeight") -> bool:
    """Whether q(w) is a product of normals, each with its own mean and scale."""
    return weight.posterior.factorised and {"mean", "log_scale"} <= set(
        weight.variables
    )
