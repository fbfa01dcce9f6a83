"""The likelihood of unordered classes."""

import math
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from tfbbb.likelihoods.likelihood import Likelihood


@keras.saving.register_keras_serializable(package="tfbbb.likelihoods")
class Categorical(Likelihood):
    """One of C classes: `p(y = c | f) = softmax(f)_c`; the network gives C logits.

    Targets are class indices, [n] or [n, 1], or one-hot rows, [n, C]. The mean of the
    targets is that of their one-hot code: the class probabilities.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Categorical()
    >>> likelihood.mean([[0.0, 0.0]]).numpy().tolist()
    [[0.5, 0.5]]
    """

    task: Literal["regression", "classification"] = "classification"

    def num_outputs(self, num_targets: int) -> int:
        """Returns how many outputs the network needs for `num_targets` classes."""
        return num_targets

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        if output_shape[-1] is None or output_shape[-1] < 2:
            raise ValueError(
                "Categorical needs one output per class, and two classes at the least. "
                f"Received: output_shape={output_shape}"
            )
        self.num_classes = output_shape[-1]
        self._rank = len(output_shape) - 1

    def check_targets(self, targets: Any) -> np.ndarray:
        values = np.asarray(targets)
        coded = values.ndim == self._rank + 1
        if coded and values.shape[-1] == self.num_classes:
            one_hot = np.isin(values, (0, 1)).all(axis=-1) & (values.sum(axis=-1) == 1)
            if not one_hot.all():
                first = np.unravel_index(np.argmin(one_hot), one_hot.shape)
                raise ValueError(
                    "One-hot targets must have one 1 and else 0 in every row. "
                    f"Received: {values[first].tolist()} in row {int(first[0])}"
                )
            values = values.argmax(axis=-1)
        elif coded and values.shape[-1] == 1:
            values = values[..., 0]
        if values.ndim != self._rank:
            raise ValueError(
                f"The targets must be class indices 0 to {self.num_classes - 1}, or "
                f"one-hot rows of {self.num_classes}. "
                f"Received: shape={np.shape(targets)}"
            )
        try:
            if values.dtype == object:
                values = values.astype(np.float64)
            with np.errstate(invalid="ignore"):
                indices = values.astype(np.int32)
            valid = (indices == values) & (indices >= 0) & (indices < self.num_classes)
        except (TypeError, ValueError):
            valid = np.zeros(values.shape, dtype=bool)
        if not np.all(valid):
            first = np.unravel_index(np.argmin(valid), valid.shape)
            raise ValueError(
                f"The targets must be class indices 0 to {self.num_classes - 1}, or "
                f"one-hot rows of {self.num_classes}. "
                f"Received: {values.tolist()[first[0]]!r} in row {int(first[0])}"
            )
        return indices

    def _aligned(self, targets: Any, outputs: tf.Tensor) -> tf.Tensor:
        targets, rows = tf.convert_to_tensor(targets), tf.shape(outputs)[:-1]
        return tf.cond(
            tf.size(targets) == tf.reduce_prod(rows),
            lambda: tf.cast(tf.reshape(targets, rows), tf.int32),
            # Both branches are traced, so the last dimension must fit either size.
            lambda: tf.argmax(
                tf.reshape(targets, tf.concat([rows, [-1]], 0)),
                axis=-1,
                output_type=tf.int32,
            ),
        )

    def mean(self, outputs: Any) -> tf.Tensor:
        return tf.nn.softmax(_at_least_float32(outputs))

    def variance(self, outputs: Any) -> tf.Tensor:
        probabilities = self.mean(outputs)
        return probabilities * (1.0 - probabilities)

    def log_prob(self, targets: Any, outputs: Any) -> tf.Tensor:
        logits = _at_least_float32(outputs)
        targets = tf.broadcast_to(tf.cast(targets, tf.int32), tf.shape(logits)[:-1])
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)

    def sample(self, outputs: Any, noise: Any) -> tf.Tensor:
        """Returns class indices, [...], from standard normal noise [..., 1]."""
        cumulative = tf.cumsum(self.mean(outputs), axis=-1)
        noise = tf.cast(noise, cumulative.dtype)
        uniform = 0.5 * tf.math.erfc(-noise * math.sqrt(0.5))
        # The last cumulative probability is 1 up to rounding and not counted.
        return tf.reduce_sum(tf.cast(uniform > cumulative[..., :-1], tf.int32), axis=-1)


def _at_least_float32(outputs: Any) -> tf.Tensor:
    outputs = tf.convert_to_tensor(outputs)
    return outputs if outputs.dtype == tf.float64 else tf.cast(outputs, tf.float32)
