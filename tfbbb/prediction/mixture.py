"""The density of a uniform mixture of likelihoods, one per posterior sample."""

from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from tfbbb.likelihoods import Likelihood


def log_prob(likelihood: "Likelihood", targets: Any, outputs: Any) -> tf.Tensor:
    """Returns the log of the average likelihood of each row's targets, [rows, ...]."""
    targets = tf.convert_to_tensor(targets)[:, tf.newaxis]
    per_sample = likelihood.log_prob(targets, tf.cast(outputs, tf.float64))
    num_samples = tf.cast(tf.shape(per_sample)[1], tf.float64)
    return tf.reduce_logsumexp(per_sample, axis=1) - tf.math.log(num_samples)
