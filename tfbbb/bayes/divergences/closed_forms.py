"""KL divergences of families that have a closed form, or most of one."""

from __future__ import annotations

from typing import cast

from tfbbb.base.lazy import tf
from tfbbb.base.private_apis import custom_gradient
from tfbbb.base.types import Tensor
from tfbbb.bayes import posteriors, priors
from tfbbb.bayes.divergences.kl_divergence import register_estimate, register_kl
from tfbbb.bayes.posteriors import NormalPosterior
from tfbbb.bayes.posteriors.posterior import (
    NORMAL_ENTROPY,
    Sizes,
    flatten_weights,
    sum_over_weights,
)
from tfbbb.bayes.variational_weight import VariationalWeight

NORMAL_POSTERIORS: tuple[type, ...] = (
    *(
        q
        for q in posteriors.registry.classes.values()
        if issubclass(q, NormalPosterior)
    ),
    posteriors.JointNormal,
)


def entropy_of(weight: VariationalWeight) -> Tensor:
    """Returns E[-log q(w)] in nats, [members]."""
    return weight.posterior.entropy(weight.parameters, weight.shape)


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


@register_kl(posteriors.MeanFieldNormal, priors.Normal)
def _mean_field_from_normal(weight: VariationalWeight) -> Tensor:
    # sum_i [log(s / sigma_i) + (sigma_i^2 + mu_i^2) / (2 s^2) - 1/2]
    prior = cast(priors.Normal, weight.prior)
    squares, log_scales = _sums(
        weight.mean, weight.parameters["log_scale"], weight.variance, weight.shape
    )
    expected_log_prob = prior.log_prob_of_sum(
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


@register_kl(posteriors.Point, type(None))
def _maximum_likelihood(weight: VariationalWeight) -> Tensor:
    return tf.zeros([weight.members] if weight.members > 1 else [])


@register_kl(posteriors.Point, priors.Prior)
def _maximum_a_posteriori(weight: VariationalWeight) -> Tensor:
    return -weight.prior_log_prob(weight.mean)


def _is_known_to_tfp(weight: VariationalWeight) -> bool:
    try:
        _through_tfp(weight)
    except NotImplementedError:
        return False
    return True


@register_kl(
    (posteriors.MeanFieldNormal, posteriors.TFPDistribution),
    priors.TFPDistribution,
    covers=_is_known_to_tfp,
)
def _through_tfp(weight: VariationalWeight) -> Tensor:
    import tensorflow_probability as tfp

    if isinstance(weight.posterior, posteriors.TFPDistribution):
        q = weight.posterior.distribution(weight.parameters)
    else:
        q = tfp.distributions.Normal(weight.mean, weight.stddev)
    prior = cast(priors.TFPDistribution, weight.prior)
    p = prior.distribution(weight.shape, weight.fan_in)
    divergences = tfp.distributions.kl_divergence(q, p)
    batch_axes = weight.shape[: len(weight.shape) - len(q.event_shape)]
    return sum_over_weights(divergences, batch_axes)
