"""KL divergences of normal posteriors from a normal prior with a full covariance."""

from __future__ import annotations

from typing import cast

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes import posteriors, priors
from tfbbb.bayes.divergences.kl_divergence import register_kl
from tfbbb.bayes.divergences.normal_posteriors import NORMAL_POSTERIORS, entropy_of
from tfbbb.bayes.posteriors.posterior import matrix_sides, reshape_last_axes
from tfbbb.bayes.variational_weight import VariationalWeight


def _has_closed_form(weight: VariationalWeight) -> bool:
    prior = cast(priors.CorrelatedNormal, weight.prior)
    known = (posteriors.FullCovarianceNormal, posteriors.LowRankNormal)
    if weight.posterior.factorised or type(weight.posterior) in known:
        return True
    is_matrix = type(weight.posterior) is posteriors.MatrixNormal
    return is_matrix and prior.covers_units(weight.shape)


@register_kl(NORMAL_POSTERIORS, priors.CorrelatedNormal, covers=_has_closed_form)
def _from_correlated_normal(weight: VariationalWeight) -> Tensor:
    # E_q[log p(w)] takes E[z^T z] of the standardised weights z:
    # that of their mean, and trace(precision of p, covariance of q).
    prior = cast(priors.CorrelatedNormal, weight.prior)
    of_mean = prior.standardized(weight.mean, weight.shape, weight.fan_in)
    squares = tf.reduce_sum(tf.square(of_mean), axis=[-2, -1]) + _trace(prior, weight)
    log_prob = prior.log_prob_of_squares(squares, weight.shape, weight.fan_in)
    return -entropy_of(weight) - log_prob


def _trace(prior: priors.CorrelatedNormal, weight: VariationalWeight) -> Tensor:
    """Returns the trace of the prior's precision times the covariance of q."""
    posterior, parameters = weight.posterior, weight.parameters
    shape, fan_in = weight.shape, weight.fan_in

    def of_directions(directions: Tensor) -> Tensor:
        """Returns the sum over directions in which weights vary, [..., m, *shape]."""
        standardized = prior.standardized(directions, shape, fan_in)
        return tf.reduce_sum(tf.square(standardized), axis=[-3, -2, -1])

    if posterior.factorised:
        precisions = tf.constant(prior.precisions(shape, fan_in), weight.variance.dtype)
        return weight.sum(weight.variance * precisions)
    if isinstance(posterior, posteriors.FullCovarianceNormal):
        root = posterior.scale_tril(parameters)
        columns = tf.linalg.matrix_transpose(root)
        return of_directions(reshape_last_axes(columns, 1, shape))
    if isinstance(posterior, posteriors.LowRankNormal):
        own = tf.exp(2.0 * parameters["log_scale"])
        precisions = tf.constant(prior.precisions(shape, fan_in), own.dtype)
        axes = len(parameters["factor"].shape)
        first = axes - len(shape) - 1
        order = [*range(first), axes - 1, *range(first, axes - 1)]
        factor = tf.transpose(parameters["factor"], order)
        return weight.sum(own * precisions) + of_directions(factor)
    # trace((C^-1 x I) (U x V)) = trace(C^-1 U) trace(V), from the roots of U and V.
    rows, columns = cast(posteriors.MatrixNormal, posterior).factors(parameters)
    side = matrix_sides(shape)[0]
    standardized = prior.standardized(rows, (side, side), fan_in)
    return tf.reduce_sum(tf.square(standardized), axis=[-2, -1]) * tf.reduce_sum(
        tf.square(columns), axis=[-2, -1]
    )
