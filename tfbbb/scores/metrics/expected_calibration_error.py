"""The calibration of the probability of the predicted class."""

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import (
    ArrayLike,
    Config,
    DType,
    Tensor,
)
from tfbbb.prediction.reliability import ReliabilityDiagram
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import binned_confidences
from tfbbb.scores.metrics.point_prediction import PredictedProbabilities
from tfbbb.scores.metrics.predictive_metric import PredictiveMetric, with_rank
from tfbbb.scores.metrics.targets import checked_targets


def reliability_diagram(
    prediction: Predictive, y: ArrayLike, *, bins: int = 15
) -> ReliabilityDiagram:
    """Computes accuracy against confidence (DeGroot and Fienberg 1983).

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> prediction = model.predictive([[1.0, 2.0], [3.0, 4.0]])
    >>> tfbbb.metrics.reliability_diagram(prediction, [0, 2], bins=1).counts
    array([2])

    Args:
        prediction: A `tfbbb.Predictive` of classes.
        y: Class indices or one-hot rows.
        bins: Number of bins, of equal width from 0 to 1.

    Raises:
        ValueError: The prediction is of numbers, the targets do not fit the prediction,
            or `bins` is not a positive integer.
    """
    return _diagram(prediction, y, bins, "reliability_diagram")


def expected_calibration_error(
    prediction: Predictive,
    y: ArrayLike,
    *,
    bins: int = 15,
    sample_weight: ArrayLike = None,
) -> float:
    """Computes `sum_b (n_b / n) |accuracy_b - confidence_b|` (Naeini et al. 2015).

    The bins b of the probability of the predicted class have equal width (Guo et al.
    2017). The error is biased: for a calibrated prediction its expectation is not 0 but
    close to `sum_b sqrt(2 n_b c_b (1 - c_b) / pi) / n` for bins of confidence c_b, so
    compare predictions on the same number of rows. The error is not proper: predicting
    the shares of the classes for every row has the error 0.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(2)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> prediction = model.predictive([[1.0, 2.0]])
    >>> right = prediction.probabilities.argmax(axis=1)
    >>> error = tfbbb.metrics.expected_calibration_error(prediction, right)
    >>> bool(error == 1.0 - prediction.probabilities.max())
    True

    Args:
        prediction: A `tfbbb.Predictive` of classes.
        y: Class indices or one-hot rows.
        bins: Number of bins, of equal width from 0 to 1.
        sample_weight: The weight of each row, [rows]; None for 1.

    Raises:
        ValueError: As for `reliability_diagram`.
    """
    name = "expected_calibration_error"
    diagram = _diagram(prediction, y, bins, name, sample_weight)
    gaps = np.abs(diagram.accuracy - diagram.confidence)
    return float(np.nansum(diagram.counts * gaps) / diagram.counts.sum())


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class ExpectedCalibrationError(PredictiveMetric):
    """`expected_calibration_error` as a Keras metric, also for plain Keras models.

    All minibatches fill the same bins.

    Example:

    >>> import tfbbb
    >>> metric = tfbbb.metrics.ExpectedCalibrationError()
    >>> metric.update_state([1, 0], [[0.25, 0.75], [0.25, 0.75]])
    >>> float(metric.result())
    0.25

    Args:
        bins: Number of bins, of equal width from 0 to 1.
        from_logits: Whether a plain Keras model outputs logits instead of
            probabilities.
        name: Name of the metric.
        dtype: Type of its state.
    """

    scored = "classes"
    default_name = "expected_calibration_error"

    def __init__(
        self,
        bins: int = 15,
        from_logits: bool = False,
        name: str | None = None,
        dtype: DType = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.bins = positive_integer("bins", bins)
        self.from_logits = from_logits
        self.weight = self.add_variable((), "zeros", name="weight")
        # For each bin, the number of right predictions minus the expected number.
        self.excess = self.add_variable((self.bins,), "zeros", name="excess")

    def of_mean(self, y_pred: Tensor) -> PredictedProbabilities:
        return PredictedProbabilities(y_pred, self.from_logits)

    def accumulate(
        self, prediction: Predictive, targets: tf.Tensor, weights: tf.Tensor
    ) -> None:
        index, confidence, right = binned_confidences(prediction, targets, self.bins)
        weights = tf.ones_like(confidence) * with_rank(weights, len(confidence.shape))
        excess = tf.math.unsorted_segment_sum(
            weights * (right - confidence), index, self.bins
        )
        self.excess.assign_add(tf.cast(excess, self.dtype))
        self.weight.assign_add(tf.cast(tf.reduce_sum(weights), self.dtype))

    def result(self) -> tf.Tensor:
        gaps = tf.abs(tf.convert_to_tensor(self.excess))
        return tf.math.divide_no_nan(
            tf.reduce_sum(gaps), tf.convert_to_tensor(self.weight)
        )

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "bins": self.bins,
            "from_logits": self.from_logits,
        }


def _diagram(
    prediction: Predictive,
    y: ArrayLike,
    bins: int,
    score: str,
    sample_weight: ArrayLike = None,
) -> ReliabilityDiagram:
    positive_integer("bins", bins)
    targets = checked_targets(prediction, y, "classes", score)
    return ReliabilityDiagram.of(prediction, targets, bins, sample_weight)
