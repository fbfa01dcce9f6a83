"""Functions of a normal with exponential parts, in closed form."""

import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.prediction.moments.marginals import MeanAndVariance
from tfbbb.prediction.moments.rectified import rectified

# Klambauer et al. 2017.
_SELU_SCALE = 1.0507009873554805
_SELU_ALPHA = 1.6732632423543772


def exponential(mean: Tensor, variance: Tensor) -> MeanAndVariance:
    """Returns mean and variance of `exp(x)` of normals x, the log-normal's."""
    expected = tf.exp(mean + 0.5 * variance)
    return expected, tf.square(expected) * tf.math.expm1(variance)


def elu(mean: Tensor, variance: Tensor, alpha: float = 1.0) -> MeanAndVariance:
    """Returns mean and variance of the exponential linear unit of normals x.

    `elu(x) = r - alpha g` with `r = max(x, 0)` and `g = 1 - exp(min(x, 0))`, a product
    of which is always 0. Hence, with `T_k = E[exp(k x); x < 0]`,

        E = E[r] - alpha E[g]
        Var = Var[r] + alpha^2 Var[g] + 2 alpha E[r] E[g]
        E[g] = P(x < 0) - T_1,   E[g^2] = P(x < 0) - 2 T_1 + T_2
    """
    # In double precision, because the moments of g cancel if the variance is small.
    dtype = mean.dtype
    mean, variance = tf.cast(mean, tf.float64), tf.cast(variance, tf.float64)
    r, r_variance = rectified(mean, variance)
    stddev = tf.sqrt(2.0 * tf.maximum(variance, 1e-36))
    below = 0.5 * tf.math.erfc(mean / stddev)
    first, second = (_tail(k, mean, variance, stddev) for k in (1.0, 2.0))
    g = below - first
    g_variance = tf.nn.relu((below - 2.0 * first + second) - tf.square(g))
    expected = r - alpha * g
    spread = r_variance + alpha**2 * g_variance + 2.0 * alpha * r * g
    return tf.cast(expected, dtype), tf.cast(tf.nn.relu(spread), dtype)


def selu(mean: Tensor, variance: Tensor) -> MeanAndVariance:
    """Returns mean and variance of the scaled exponential linear unit of normals x."""
    mean, variance = elu(mean, variance, _SELU_ALPHA)
    return _SELU_SCALE * mean, _SELU_SCALE**2 * variance


def _tail(k: float, mean: Tensor, variance: Tensor, stddev: Tensor) -> Tensor:
    """Returns `E[exp(k x); x < 0] = exp(k m + k^2 v / 2) Phi(-(m + k v) / sqrt(v))`."""
    import tensorflow_probability as tfp

    z = (mean + k * variance) / stddev
    # Above 0 the exponential may overflow and the tail vanish, and their product is
    # exp(-m^2 / 2 v) erfcx(z) / 2; below, the exponent is negative.
    upper = tf.exp(-tf.square(mean / stddev)) * tfp.math.erfcx(tf.nn.relu(z))
    exponent = tf.minimum(k * mean + 0.5 * k**2 * variance, 0.0)
    lower = tf.exp(exponent) * tf.math.erfc(tf.minimum(z, 0.0))
    return 0.5 * tf.where(z > 0.0, upper, lower)
