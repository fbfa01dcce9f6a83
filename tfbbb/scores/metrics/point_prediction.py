"""Predictions of plain Keras models: means or class probabilities alone."""

import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor


class PredictedNumbers:
    """The predicted means [rows, ..., k] of a network."""

    def __init__(self, mean: Tensor):
        self.mean = tf.cast(mean, tf.float64)

    def aligned(self, targets: ArrayLike) -> tf.Tensor:
        """Returns a minibatch's targets in the shape of the means."""
        return tf.reshape(tf.cast(targets, tf.float64), tf.shape(self.mean))


class PredictedProbabilities:
    """The class probabilities [rows, ..., C] of a network.

    Its outputs are probabilities or logits of the classes, or one column for the second
    of two classes.
    """

    def __init__(self, outputs: Tensor, from_logits: bool):
        outputs = tf.cast(outputs, tf.float64)
        if outputs.shape[-1] == 1:
            second = tf.sigmoid(outputs) if from_logits else outputs
            self.probabilities = tf.concat([1.0 - second, second], axis=-1)
        else:
            self.probabilities = tf.nn.softmax(outputs) if from_logits else outputs
        self.mean = self.probabilities

    def aligned(self, targets: ArrayLike) -> tf.Tensor:
        """Returns a minibatch's targets, indices or one-hot, as indices [rows, ...]."""
        targets = tf.convert_to_tensor(targets)
        rows = tf.shape(self.probabilities)[:-1]
        return tf.cond(
            tf.size(targets) == tf.reduce_prod(rows),
            lambda: tf.cast(tf.reshape(targets, rows), tf.int32),
            lambda: tf.argmax(
                tf.reshape(targets, tf.concat([rows, [-1]], 0)),
                axis=-1,
                output_type=tf.int32,
            ),
        )
