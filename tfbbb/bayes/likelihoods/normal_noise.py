"""The base class of location-scale likelihoods with normal noise."""

from __future__ import annotations

import math

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods.location_scale import LocationScale
from tfbbb.bayes.posteriors.normal_posterior import HALF_LOG_2PI


def standard_normal_log_prob(z: tf.Tensor) -> tf.Tensor:
    """Returns log N(z; 0, 1)."""
    return -0.5 * tf.square(z) - HALF_LOG_2PI


def standard_normal_cdf(z: tf.Tensor) -> tf.Tensor:
    """Returns the standard normal distribution function at z."""
    # erfc keeps the precision of the lower tail, which 1 + erf would lose.
    return 0.5 * tf.math.erfc(-z * math.sqrt(0.5))


class NormalNoise(LocationScale):
    """`y = loc + scale * z` for each target, with standard normal z.

    The sum of a normal location and normal noise is normal: if `integrates_location` is
    True, `loc` may have a variance, which adds to `scale^2`.
    """

    def _log_density(self, z: tf.Tensor, *shape: tf.Tensor) -> tf.Tensor:
        return standard_normal_log_prob(z)

    def _distribution(self, z: tf.Tensor, *shape: tf.Tensor) -> tf.Tensor:
        return standard_normal_cdf(z)

    def _inverse(self, levels: tf.Tensor, *shape: tf.Tensor) -> tf.Tensor:
        return tf.math.ndtri(levels)

    def _from_standard_normal(self, noise: tf.Tensor, *shape: tf.Tensor) -> tf.Tensor:
        return noise

    def _standard_variance(self, *shape: tf.Tensor) -> Tensor:
        return 1.0

    def _standard_entropy(self, *shape: tf.Tensor) -> Tensor:
        return 0.5 + HALF_LOG_2PI

    def _target_parameters(self, raw: dict[str, tf.Tensor]) -> tuple[tf.Tensor, ...]:
        location, scale = self._noise_parameters(raw)
        if "location_variance" in raw:
            variance = tf.square(scale) + self._raw_location_variance(raw)
            scale = tf.sqrt(variance)
        return location, scale
