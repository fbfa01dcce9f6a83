"""Poisson and negative binomial distributions, exact for any mean and concentration.

Both are one family: counts of a Poisson distribution whose rate is itself gamma
distributed with mean mu and concentration r, so that their variance is mu + mu^2 / r.
`concentration=None` is its limit for r to infinity, the Poisson distribution.

TensorFlow's incomplete gamma and beta functions are not used: from parameters of 10^6
on they have no digit left.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tfbbb.likelihoods.normal_noise import HALF_LOG_2PI
from tfbbb.likelihoods.stirling_correction import stirling_correction

# exp(-36) is the precision of doubles.
_NEGLIGIBLE = 36.0
# They leave 1e-13 of the worst tails, where 32 leave 1e-10.
_TAIL_NODES, _TAIL_WEIGHTS = np.polynomial.legendre.leggauss(44)
_ENTROPY_NODES = 160
_NODES_AT_ONCE = 11
# Terms of the series of x - log(1 + x), which is used up to this x.
_EXCESS_TERMS, _SMALL = 12, 0.05

Function = Callable[[tf.Tensor], tf.Tensor]
NodeFunction = Callable[[np.ndarray], tf.Tensor]


def log_mass(
    counts: tf.Tensor,
    mean: tf.Tensor,
    log_mean: tf.Tensor,
    concentration: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns log p(counts), without the cancellation that log gamma functions suffer.

    With Stirling's correction d(x) = log x! - log(sqrt(2 pi x) (x / e)^x), the log mass
    of y > 0 is the negative of a deviance D and small terms (Loader 2000):

        d(y + r) - d(y) - d(r) - log(2 pi y (1 + y / r)) / 2 - D,
        D = r log((r + mu) / (r + y)) + y log(y (r + mu) / (mu (r + y)))

    Args:
        counts: Whole numbers y >= 0.
        mean: mu; it may be 0 where `log_mean` is too small for it.
        log_mean: log mu.
        concentration: r.
    """
    positive = counts > 0.0
    y = tf.where(positive, counts, tf.ones_like(counts))
    log_odds = tf.math.log(y) - log_mean
    if concentration is None:
        none = -mean
        share = tf.ones_like(y)
    else:
        none = -concentration * tf.math.log1p(mean / concentration)
        share = concentration / (concentration + y)
        log_totals = _log_of_ratio(
            (mean - y) / (concentration + y),
            tf.math.log(concentration + mean) - tf.math.log(concentration + y),
        )
        log_odds += log_totals
    # Where y / mu is far from 1 it may overflow, and so may its derivatives.
    near = tf.abs(y - mean) * share <= 0.5 * tf.maximum(mean, 1e-20)
    log_odds = _log_of_ratio(
        (y - mean) / tf.where(near, mean, y) * share, log_odds, near
    )
    some = -y * log_odds - stirling_correction(y) - 0.5 * tf.math.log(y) - HALF_LOG_2PI
    if concentration is None:
        some += y - mean
    else:
        some += (
            stirling_correction(concentration + y)
            - stirling_correction(concentration)
            - 0.5 * tf.math.log1p(y / concentration)
            - concentration * log_totals
        )
    return tf.where(positive, some, none)


def cumulative(
    counts: tf.Tensor,
    mean: tf.Tensor,
    log_mean: tf.Tensor,
    concentration: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns P(y <= counts) of counts >= 0, in float64, to some 1e-13.

    Its derivative by s = log mu is -g(s), the density of a log gamma or logistic beta
    variable:

        P(y <= n) = int_{log mu}^inf g(s) ds,  g(s) = p(n; s) (r + n) mu / (r + mu),

    and g is concave in the log. The tail beyond log mu on that side on which g falls is
    integrated by Gauss and Legendre's rule, as far as it matters. The right tail falls
    like exp(-r s), too slowly for r < 1: by a recurrence there it is that of r + 1.

    Args:
        counts: Whole numbers n >= 0.
        mean: mu.
        log_mean: log mu.
        concentration: r.
    """
    mass = tf.exp(log_mass(counts, mean, log_mean, concentration))
    left_rate = counts + 1.0
    if concentration is None:
        at_mean, added = mass * mean, 0.0
        slope, curvature = left_rate - mean, left_rate
        inverse_right_rate = tf.zeros_like(left_rate)
        log_fall = _fall_of_poisson(left_rate, mean)
    else:
        total = concentration + mean
        q, p = mean / total, concentration / total
        at_mean = mass * (concentration + counts) * q
        few = concentration < 1.0
        rise = (concentration + counts + 1.0) / concentration * p
        added = tf.where(few, at_mean / concentration, 0.0)
        at_mean *= tf.where(few, rise, 1.0)
        right_rate = tf.where(few, concentration + 1.0, concentration)
        both = right_rate + left_rate
        slope, curvature = left_rate - both * q, right_rate / both * left_rate
        inverse_right_rate = 1.0 / right_rate
        log_fall = _fall_of_negative_binomial(left_rate, right_rate, q, p)
    right = slope <= 0.0
    half = 0.5 * _NEGLIGIBLE * tf.where(right, inverse_right_rate, 1.0 / left_rate)
    length = half + tf.sqrt(tf.square(half) + 2.0 * _NEGLIGIBLE / curvature)
    length = tf.minimum(length, _NEGLIGIBLE / tf.maximum(tf.abs(slope), 1e-300))
    step = 0.5 * tf.where(right, length, -length)[..., tf.newaxis]

    def height(nodes: np.ndarray) -> tf.Tensor:
        return tf.exp(log_fall(step * (nodes + 1.0)))

    tail = 0.5 * length * at_mean * _sum(height, _TAIL_NODES, _TAIL_WEIGHTS)
    return tf.clip_by_value(tf.where(right, tail, 1.0 - tail) + added, 0.0, 1.0)


def _fall_of_poisson(left_rate: tf.Tensor, mean: tf.Tensor) -> Function:
    left_rate, mean = left_rate[..., tf.newaxis], mean[..., tf.newaxis]
    return lambda t: left_rate * t - mean * tf.math.expm1(t)


def _fall_of_negative_binomial(
    left_rate: tf.Tensor, right_rate: tf.Tensor, q: tf.Tensor, p: tf.Tensor
) -> Function:
    both = (right_rate + left_rate)[..., tf.newaxis]
    # Two forms of one function, of which one cancels where the other does not.
    by_right = right_rate < left_rate
    rate = tf.where(by_right, -right_rate, left_rate)[..., tf.newaxis]
    part = tf.where(by_right, p, q)[..., tf.newaxis]
    sign = tf.sign(rate)
    return lambda t: rate * t - both * tf.math.log1p(part * tf.math.expm1(sign * t))


def entropy(mean: tf.Tensor, concentration: tf.Tensor | None = None) -> tf.Tensor:
    """Returns the entropy of y in nats, in float64, to some 1e-9 for means up to 1e6.

    By Malmsten's integral of the log gamma function (as Knessl 1998 for the Poisson
    distribution) with the probability generating function G of y,

        H = -log p(mu) + int_0^inf (G(e^-t) - e^(-mu t)) (e^-t - e^(-r t))
                                   / (1 - e^-t) dt / t

    where p(mu) is the mass continued to the real number mu. It is summed by the
    trapezoidal rule in log t.

    Args:
        mean: mu.
        concentration: r.
    """
    mean = tf.maximum(mean, 1e-30)
    at_mean = stirling_correction(mean) + 0.5 * tf.math.log(mean) + HALF_LOG_2PI
    slowest = tf.ones_like(mean)
    if concentration is not None:
        at_mean += (
            stirling_correction(concentration)
            - stirling_correction(concentration + mean)
            + 0.5 * tf.math.log1p(mean / concentration)
        )
        slowest = tf.minimum(slowest, concentration)
    first = tf.math.log(1e-12 / mean)
    step = (tf.math.log(_NEGLIGIBLE / slowest) - first) / (_ENTROPY_NODES - 1.0)
    generating = _generating_of(mean, concentration)
    starts, steps = first[..., tf.newaxis], step[..., tf.newaxis]

    def height(nodes: np.ndarray) -> tf.Tensor:
        return generating(tf.exp(starts + steps * nodes))

    nodes = np.arange(float(_ENTROPY_NODES))
    return at_mean + step * _sum(height, nodes, np.ones_like(nodes))


def _generating_of(mean: tf.Tensor, concentration: tf.Tensor | None) -> Function:
    """Returns the integrand of the entropy, per log t."""
    mean = mean[..., tf.newaxis]
    if concentration is not None:
        concentration = concentration[..., tf.newaxis]

    def integrand(t: tf.Tensor) -> tf.Tensor:
        one_minus = -tf.math.expm1(-t)
        # t - (1 - e^-t)
        beyond = tf.where(t < _SMALL, _excess(-one_minus), t - one_minus)
        if concentration is None:
            log_generating, log_ratio = -mean * one_minus, mean * beyond
            difference = tf.exp(-t)
        else:
            ratio = mean / concentration * one_minus
            log_generating = -concentration * tf.math.log1p(ratio)
            log_ratio = mean * beyond + concentration * _excess(ratio)
            # e^-t - e^(-r t), by the slower of the two.
            faster = -tf.abs(concentration - 1.0) * t
            slower = tf.exp(-tf.minimum(concentration, 1.0) * t)
            sign = tf.sign(concentration - 1.0)
            difference = -sign * slower * tf.math.expm1(faster)
        generated = -tf.exp(log_generating) * tf.math.expm1(-log_ratio)
        return generated * difference / one_minus

    return integrand


def _log_of_ratio(
    excess: tf.Tensor, direct: tf.Tensor, near: tf.Tensor | None = None
) -> tf.Tensor:
    """Returns the log of 1 + excess, where that is not near 1 as it is given."""
    if near is None:
        near = tf.abs(excess) <= 0.5
    return tf.where(near, tf.math.log1p(tf.where(near, excess, 0.0)), direct)


def _excess(x: tf.Tensor) -> tf.Tensor:
    """Returns x - log(1 + x), for x not much below 0."""
    small = tf.abs(x) < _SMALL
    few = tf.where(small, x, 0.0)
    series = tf.zeros_like(x)
    for n in range(_EXCESS_TERMS + 1, 1, -1):
        series = 1.0 / n - few * series
    return tf.where(small, tf.square(few) * series, x - tf.math.log1p(x))


def _sum(height: NodeFunction, nodes: np.ndarray, weights: np.ndarray) -> tf.Tensor:
    """Returns the weighted sum over nodes, which are the last axis of heights.

    Some of them at a time, for a balance of memory and calls.
    """
    parts = -(-len(nodes) // _NODES_AT_ONCE)
    return tf.add_n(
        [
            tf.reduce_sum(weight * height(some), axis=-1)
            for some, weight in zip(
                np.array_split(nodes, parts),
                np.array_split(weights, parts),
                strict=True,
            )
        ]
    )
