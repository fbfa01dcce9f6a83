"""Mean and variance of the positive part of a normal, in closed form."""

import math

import tensorflow as tf

from tfbbb.base.types import Tensor

# Far below every variance that matters, and above the smallest numbers of float32.
_TINY = 1e-36


def rectified(mean: Tensor, variance: Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns mean and variance of `max(x, 0)` of normals x (Frey and Hinton 1999).

    With `s^2` the variance and `a = mean / s`,

        E = mean Phi(a) + s phi(a)
        Var = s^2 Phi(a) - E (E - mean)

    where the usual `E[max(x, 0)^2] - E^2` would cancel for means far above s: here
    `E - mean = E[max(-x, 0)]`, which is exactly 0 there.
    """
    root = tf.sqrt(2.0 * variance + _TINY)
    scaled = mean / root
    positive = 0.5 + 0.5 * tf.math.erf(scaled)
    density = tf.exp(-tf.square(scaled))
    expected = mean * positive + (0.5 / math.sqrt(math.pi)) * root * density
    return expected, tf.nn.relu(variance * positive - expected * (expected - mean))
