"""The negative log likelihood of a predictive distribution."""

from typing import Literal, overload

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike
from tfbbb.prediction.result import Predictive
from tfbbb.scores.metrics.mean_score import MeanScore, average
from tfbbb.scores.metrics.targets import checked_targets


@overload
def negative_log_likelihood(
    prediction: Predictive, y: ArrayLike, *, per_row: Literal[False] = False
) -> float: ...


@overload
def negative_log_likelihood(
    prediction: Predictive, y: ArrayLike, *, per_row: Literal[True]
) -> np.ndarray: ...


def negative_log_likelihood(
    prediction: Predictive, y: ArrayLike, *, per_row: bool = False
) -> float | np.ndarray:
    """Computes `-log p(y | x, data)`, the logarithmic score (Good 1952), in nats.

    The density is the joint density of all targets (and places) of a row. The score is
    proper. Lower is better among predictions in the same unit; a change of units shifts
    the score.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> prediction = model.predictive([[0.0, 0.0]])  # logits of 0, but for the biases
    >>> score = tfbbb.metrics.negative_log_likelihood(prediction, [1])
    >>> rows = tfbbb.metrics.negative_log_likelihood(prediction, [1], per_row=True)
    >>> rows.shape, score == float(rows.mean())
    ((1,), True)

    Args:
        prediction: A `tfbbb.Predictive`.
        y: Targets in raw units, [rows, k] (or [rows] for one target); for classes their
            indices or one-hot rows.
        per_row: Whether to return the score of each row, [rows], instead of the mean.

    Raises:
        ValueError: The targets do not fit the prediction.
    """
    targets = checked_targets(
        prediction, y, "any", "negative_log_likelihood", by_place=True
    )
    return average(_scores(prediction, targets), per_row)


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class NegativeLogLikelihood(MeanScore):
    """`negative_log_likelihood` as a Keras metric.

    In a step of a `tfbbb.BayesianModel`, `nll` is the mean of `-log p(y | x, w)` over
    the draws, a term of the objective. This metric is `-log` of the mean of
    `p(y | x, w)` over the draws: by Jensen's inequality it is never larger, and for one
    draw it is the same.

    The score of a row is the sum over its places. Masked places add nothing. Weights of
    places multiply the summands; the weight of the row is then their mean over the
    places that are not masked.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, members=3)
    >>> model.compile(metrics=[tfbbb.metrics.NegativeLogLikelihood("mixture_nll")])
    """

    default_name = "negative_log_likelihood"

    def accumulate(
        self, prediction: Predictive, targets: tf.Tensor, weights: tf.Tensor
    ) -> None:
        scores = -tf.convert_to_tensor(prediction.log_prob(targets))
        if len(weights.shape) == 1:
            scores, of_rows = _summed_over_places(scores), weights
        else:
            mask = getattr(prediction, "mask", None)
            kept = tf.ones_like(weights) if mask is None else tf.cast(mask, tf.float64)
            of_rows = tf.math.divide_no_nan(
                _summed_over_places(weights), _summed_over_places(kept)
            )
        self.add(tf.reduce_sum(weights * scores), tf.reduce_sum(of_rows))


def _scores(prediction: Predictive, targets: ArrayLike) -> tf.Tensor:
    return -_summed_over_places(tf.convert_to_tensor(prediction.log_prob(targets)))


def _summed_over_places(values: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(values, axis=list(range(1, len(values.shape))))
