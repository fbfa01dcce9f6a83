"""What a uniform mixture of likelihoods, one per posterior sample, adds up to.

`outputs` is [rows, S, ..., P] throughout: what the network gave for a row and sample.
Sums are taken in float64.
"""

from typing import Any

import tensorflow as tf

from tfbbb.likelihoods import Likelihood


def moments(likelihood: Likelihood, outputs: Any) -> dict[str, tf.Tensor]:
    """Decomposes the predictive variance by the law of total variance.

    `Var[y] = Var_w[E[y | w]] + E_w[Var[y | w]]`: epistemic, which more data would
    lower, plus aleatoric, which it would not. The variance over samples is the unbiased
    one (S - 1 in the denominator).

    Returns:
        `mean`, `variance`, `epistemic`, `aleatoric` and `mean_standard_error` (of the
        Monte Carlo mean: sqrt(epistemic / S)), each [rows, ..., k], float64.
    """
    outputs = tf.cast(outputs, tf.float64)
    means, variances = likelihood.mean(outputs), likelihood.variance(outputs)
    num_samples = tf.cast(tf.shape(means)[1], tf.float64)
    mean = tf.reduce_mean(means, axis=1)
    deviations = means - mean[:, tf.newaxis]
    epistemic = tf.reduce_sum(tf.square(deviations), axis=1) / (num_samples - 1.0)
    aleatoric = tf.reduce_mean(variances, axis=1)
    return {
        "mean": mean,
        "variance": epistemic + aleatoric,
        "epistemic": epistemic,
        "aleatoric": aleatoric,
        "mean_standard_error": tf.sqrt(epistemic / num_samples),
    }


def information(likelihood: Likelihood, outputs: Any) -> dict[str, tf.Tensor]:
    """Splits the entropy of the predicted class, in nats.

    `H[E_w p] = E_w H[p] + I(y; w)`: the mutual information of class and weights is the
    epistemic part.

    Returns:
        `probabilities` [rows, ..., C], `entropy` and `mutual_information` [rows, ...],
        float64.
    """
    probabilities = likelihood.mean(tf.cast(outputs, tf.float64))
    average = tf.reduce_mean(probabilities, axis=1)
    entropy = _entropy(average)
    expected = tf.reduce_mean(_entropy(probabilities), axis=1)
    return {
        "probabilities": average,
        "entropy": entropy,
        # Not negative by Jensen's inequality; rounding could make it so.
        "mutual_information": tf.maximum(entropy - expected, 0.0),
    }


def log_prob(likelihood: Likelihood, targets: Any, outputs: Any) -> tf.Tensor:
    """Returns the log of the average likelihood of each row's targets, [rows, ...]."""
    targets = tf.convert_to_tensor(targets)[:, tf.newaxis]
    per_sample = likelihood.log_prob(targets, tf.cast(outputs, tf.float64))
    num_samples = tf.cast(tf.shape(per_sample)[1], tf.float64)
    return tf.reduce_logsumexp(per_sample, axis=1) - tf.math.log(num_samples)


def _entropy(probabilities: tf.Tensor) -> tf.Tensor:
    return -tf.reduce_sum(tf.math.xlogy(probabilities, probabilities), axis=-1)
