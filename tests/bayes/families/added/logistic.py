"""A likelihood that only the tests know: logistic noise."""

import math

from tfbbb.base.lazy import tf
from tfbbb.bayes.likelihoods import register
from tfbbb.bayes.likelihoods.location_scale import LocationScale, NoiseScale
from tfbbb.bayes.likelihoods.regression import Heteroscedastic, Standardize


@register("logistic", "A number with logistic noise.")
class Logistic(LocationScale):
    """`y = loc + scale * z`, with z of the standard logistic distribution."""

    def __init__(
        self,
        heteroscedastic: Heteroscedastic = False,
        scale: NoiseScale = None,
        standardize: Standardize = True,
        **kwargs,
    ):
        super().__init__(heteroscedastic, scale, standardize, **kwargs)

    def _log_density(self, z, *shape):
        return -z - 2.0 * tf.nn.softplus(-z)

    def _distribution(self, z, *shape):
        return tf.sigmoid(z)

    def _inverse(self, levels, *shape):
        return tf.math.log(levels) - tf.math.log1p(-levels)

    def _standard_variance(self, *shape):
        return math.pi**2 / 3.0
