"""The error of Stirling's formula for the log gamma function."""

from __future__ import annotations

from tfbbb.base.lazy import tf
from tfbbb.bayes.posteriors.normal_posterior import HALF_LOG_2PI

# For larger x, the correction has a series that is exact in double precision.
_LARGE = 8.0


def stirling_correction(x: tf.Tensor) -> tf.Tensor:
    """Returns log G(x + 1) - log(sqrt(2 pi x) (x / e)^x), for x > 0."""
    import tensorflow_probability as tfp

    large = x >= _LARGE
    few, many = tf.minimum(x, _LARGE), tf.maximum(x, _LARGE)
    direct = tf.math.lgamma(few + 1.0) - (few + 0.5) * tf.math.log(few) + few
    series = tfp.math.log_gamma_correction(many)
    return tf.where(large, series, direct - HALF_LOG_2PI)
