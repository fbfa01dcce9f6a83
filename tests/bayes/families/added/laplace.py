"""A posterior that only the tests know: independent Laplace distributions."""

import math

from tfbbb.base.lazy import tf
from tfbbb.bayes.posteriors import Posterior, register
from tfbbb.bayes.posteriors.posterior import InitialScale, sum_over_weights


@register("laplace", "Independent Laplace distributions.")
class Laplace(Posterior):
    """`q(w) = prod_i exp(-|w_i - mean_i| / scale_i) / (2 scale_i)`."""

    symmetric = True

    def __init__(self, initial_scale: InitialScale = 0.1):
        self.initial_scale = initial_scale

    def declared(self, shape, fan_in, mean):
        log_scale = math.log(self.initial_scale / math.sqrt(2.0 * fan_in))
        return {"mean": (shape, mean), "log_scale": (shape, log_scale)}

    def mean(self, parameters, shape):
        return parameters["mean"]

    def variance(self, parameters, shape):
        return 2.0 * tf.exp(2.0 * parameters["log_scale"])

    def perturb(self, parameters, noise, shape):
        tail = tf.math.erfc(tf.abs(noise) * math.sqrt(0.5))
        return -tf.exp(parameters["log_scale"]) * tf.sign(noise) * tf.math.log(tail)

    def log_prob(self, parameters, weights, shape):
        log_scale = parameters["log_scale"]
        distance = tf.abs(weights - parameters["mean"]) * tf.exp(-log_scale)
        return sum_over_weights(-distance - log_scale - math.log(2.0), shape)
