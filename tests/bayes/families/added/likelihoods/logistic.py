"""A likelihood that only the tests know: logistic noise."""

import math

import keras
import tensorflow as tf

from tests.bayes.families.added.declarations import LogisticLikelihood
from tfbbb.bayes.likelihoods.location_scale import LocationScale


@keras.saving.register_keras_serializable(package="tests")
class Logistic(LogisticLikelihood, LocationScale):
    """`y = loc + scale * z`, with z of the standard logistic distribution."""

    def _log_density(self, z, *shape):
        return -z - 2.0 * tf.nn.softplus(-z)

    def _distribution(self, z, *shape):
        return tf.sigmoid(z)

    def _inverse(self, levels, *shape):
        return tf.math.log(levels) - tf.math.log1p(-levels)

    def _standard_variance(self, *shape):
        return math.pi**2 / 3.0

    def _standard_entropy(self, *shape):
        return 2.0
