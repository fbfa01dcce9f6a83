"""Roots of the second derivatives of a log likelihood in the network's outputs."""

import tensorflow as tf

from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Likelihood


def curvature_roots(
    likelihood: Likelihood, y: ArrayLike, outputs: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns log p [rows], and R with `sum_q R_q R_q^T = -d^2 log p / df^2`.

    R is [rows, Q, ..., P]. Negative eigenvalues count as 0.
    """
    log_prob, seconds = _second_derivatives(likelihood, y, outputs)
    if seconds.shape[-1] == 1:
        roots = tf.sqrt(tf.maximum(seconds, 0.0))
    else:
        eigenvalues, vectors = tf.linalg.eigh(seconds)
        scales = tf.sqrt(tf.maximum(eigenvalues, 0.0))
        roots = tf.transpose(vectors * scales[:, tf.newaxis], [0, 2, 1])
    shape = tf.concat([tf.shape(roots)[:2], tf.shape(outputs)[1:]], 0)
    roots = tf.reshape(roots, shape)
    roots.set_shape([None, seconds.shape[-1], *outputs.shape[1:]])
    return log_prob, roots


def _second_derivatives(
    likelihood: Likelihood, y: ArrayLike, outputs: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns log p [rows] and `-d^2 log p / df^2`, [rows, Q, Q], of Q outputs."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(outputs)
        log_prob, slopes = gradient(likelihood, y, outputs)
        size = outputs.shape[1:].num_elements()
        flat = tf.reshape(slopes, [-1, size])
        each = [flat[:, q] for q in range(size)]
    columns = [
        tf.reshape(
            -tape.gradient(one, outputs, unconnected_gradients="zero"), [-1, size]
        )
        for one in each
    ]
    return log_prob, tf.stack(columns, axis=-1)


def gradient(
    likelihood: Likelihood, y: ArrayLike, outputs: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns log p [rows] and its gradient in the outputs, [rows, ..., P]."""
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        log_prob = -likelihood.negative_log_likelihood(y, outputs)
    return log_prob, tape.gradient(log_prob, outputs)
