"""Piecewise linear functions of a normal, in closed form."""

import math

import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.prediction.moments.marginals import MeanAndVariance

# Far below every variance that matters, and above the smallest numbers of float32.
_TINY = 1e-36


def rectified_parts(mean: Tensor, variance: Tensor) -> MeanAndVariance:
    """Returns `P(x > 0)` and `E[max(x, 0)]` of normals x."""
    # Each pass over the elements counts: these are as few as there can be.
    root = tf.sqrt(2.0 * variance + _TINY)
    scaled = mean / root
    positive = 0.5 + 0.5 * tf.math.erf(scaled)
    density = tf.exp(-tf.square(scaled))
    expected = mean * positive + (0.5 / math.sqrt(math.pi)) * root * density
    return positive, expected


def rectified(mean: Tensor, variance: Tensor) -> MeanAndVariance:
    """Returns mean and variance of `max(x, 0)` of normals x (Frey and Hinton 1999).

    With `s^2` the variance and `a = mean / s`,

        E = mean Phi(a) + s phi(a)
        Var = s^2 Phi(a) - E (E - mean)

    where the usual `E[max(x, 0)^2] - E^2` would cancel for means far above s: here
    `E - mean = E[max(-x, 0)]`, which is exactly 0 there.
    """
    positive, expected = rectified_parts(mean, variance)
    return expected, tf.nn.relu(variance * positive - expected * (expected - mean))


def leaky_relu(
    mean: Tensor, variance: Tensor, slope: float | Tensor
) -> MeanAndVariance:
    """Returns mean and variance of `max(x, 0) + slope min(x, 0)` of normals x.

    It is `max(x, 0) - slope max(-x, 0)`, a product of whose parts is always 0, so that
    their covariance is the covariance of their means.
    """
    upper, upper_variance = rectified(mean, variance)
    lower, lower_variance = rectified(-mean, variance)
    return upper - slope * lower, tf.nn.relu(
        upper_variance + slope**2 * lower_variance + 2.0 * slope * upper * lower
    )


def clipped(mean: Tensor, variance: Tensor, upper: float) -> MeanAndVariance:
    """Returns mean and variance of `min(max(x, 0), upper)` of normals x.

    It is `r - t` with `r = max(x, 0)` and `t = max(x - upper, 0)`; `E[r t]` is
    `E[t^2] + upper E[t]`.
    """
    # In double precision, as much cancels for means far above.
    dtype = mean.dtype
    mean, variance = tf.cast(mean, tf.float64), tf.cast(variance, tf.float64)
    low, low_variance = rectified(mean, variance)
    high, high_variance = rectified(mean - upper, variance)
    covariance = high_variance + high * (high + upper - low)
    spread = tf.nn.relu(low_variance + high_variance - 2.0 * covariance)
    return tf.cast(low - high, dtype), tf.cast(spread, dtype)


def hard_sigmoid(mean: Tensor, variance: Tensor) -> MeanAndVariance:
    """Returns mean and variance of `min(max(x / 6 + 1 / 2, 0), 1)` of normals x."""
    mean, variance = clipped(mean + 3.0, variance, 6.0)
    return mean / 6.0, variance / 36.0


def hard_tanh(mean: Tensor, variance: Tensor) -> MeanAndVariance:
    """Returns mean and variance of `min(max(x, -1), 1)` of normals x."""
    mean, variance = clipped(mean + 1.0, variance, 2.0)
    return mean - 1.0, variance
