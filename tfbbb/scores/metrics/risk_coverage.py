"""The loss of the most certain rows against their share."""

from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes
from tfbbb.scores.metrics.ranked_by_uncertainty import RankedByUncertainty
from tfbbb.scores.metrics.targets import checked_targets
from tfbbb.scores.metrics.uncertainty import (
    check_uncertainty,
    named_uncertainty,
    uncertainty,
)

# The default uncertainty of numbers.
OF_NUMBERS = "variance"


@dataclass(frozen=True)
class RiskCoverageCurve:
    """The mean loss of the most certain rows, against their share.

    Attributes:
        coverage: Shares of the rows, `1/n, 2/n, ..., 1`, [rows].
        risk: Mean loss of that share of the most certain rows, [rows].
    """

    coverage: np.ndarray
    risk: np.ndarray

    @property
    def area(self) -> float:
        """Mean risk over the coverages (AURC, Geifman et al. 2019)."""
        return float(self.risk.mean())


def risk_coverage_curve(
    prediction: Predictive, y: ArrayLike, *, by: str | None = None
) -> RiskCoverageCurve:
    """Computes the risk of predicting only the most certain rows, against their share.

    `risk_i` is the mean loss of the i most certain rows (El-Yaniv and Wiener 2010). The
    loss of a row is 1 for a wrong class, and the squared error of the mean for numbers
    (averaged over targets). Rows of equal uncertainty come in random order; the result
    is the expectation over that order.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> prediction = model.predictive([[9.0, 9.0], [0.1, 0.1]])
    >>> curve = tfbbb.metrics.risk_coverage_curve(
    ...     prediction, prediction.mean + [[2.0], [0.0]]
    ... )
    >>> curve.coverage, curve.risk  # the second row is the more certain one
    (array([0.5, 1. ]), array([0., 2.]))

    Args:
        prediction: A `tfbbb.Predictive`.
        y: Targets in raw units, [rows, k] (or [rows] for one target); for classes their
            indices or one-hot rows.
        by: `"entropy"`, `"mutual_information"`, `"epistemic"`, `"aleatoric"` or
            `"variance"`. Defaults to the entropy for classes and to the variance for
            numbers.

    Raises:
        ValueError: `by` is unknown or not defined for the prediction, or the targets do
            not fit the prediction.
    """
    check_uncertainty(by)
    targets = checked_targets(prediction, y, "any", "risk_coverage_curve")
    losses = np.asarray(row_losses(prediction, targets))
    by = named_uncertainty(prediction, by, OF_NUMBERS)
    _, ties, sizes = np.unique(
        np.asarray(uncertainty(prediction, by)),
        return_inverse=True,
        return_counts=True,
    )
    answered = np.arange(1, len(losses) + 1)
    in_order = np.repeat(np.bincount(ties, weights=losses) / sizes, sizes)
    return RiskCoverageCurve(
        coverage=answered / len(losses), risk=np.cumsum(in_order) / answered
    )


def area_under_risk_coverage(
    prediction: Predictive, y: ArrayLike, *, by: str | None = None
) -> float:
    """Computes the mean risk over all coverages (AURC, Geifman et al. 2019).

    The area is low if errors are rare and uncertain. Uninformative uncertainty has the
    mean loss of all rows.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> prediction = model.predictive([[9.0, 9.0], [0.1, 0.1]])
    >>> targets = prediction.mean + [[2.0], [0.0]]
    >>> tfbbb.metrics.area_under_risk_coverage(prediction, targets)  # of 0 and 2
    1.0

    Args:
        prediction: A `tfbbb.Predictive`.
        y: As for `risk_coverage_curve`.
        by: As for `risk_coverage_curve`.

    Raises:
        ValueError: As for `risk_coverage_curve`.
    """
    return risk_coverage_curve(prediction, y, by=by).area


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class AreaUnderRiskCoverage(RankedByUncertainty):
    """`area_under_risk_coverage` as a Keras metric.

    Weights each row by its sample weight, and takes coverage as continuous: integrates
    the risk instead of averaging it over rows.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> model.compile(metrics=[tfbbb.metrics.AreaUnderRiskCoverage()])

    Args:
        by: As for `risk_coverage_curve`.
        name: Name of the metric.
        dtype: Type of its state.
    """

    default_name = "area_under_risk_coverage"
    of_numbers = OF_NUMBERS

    def accumulate(
        self, prediction: Predictive, targets: tf.Tensor, weights: tf.Tensor
    ) -> None:
        self.add(prediction, row_losses(prediction, targets), weights)

    def result(self) -> tf.Tensor:
        weights = tf.cast(tf.convert_to_tensor(self.weights), tf.float64)
        losses = tf.cast(tf.convert_to_tensor(self.values), tf.float64)
        before = tf.cumsum(weights, exclusive=True)
        lost_before = tf.cumsum(losses, exclusive=True)
        # In a bin of n rows after N of total loss L the risk of s more is
        # (L + r s) / (N + s), where r is their mean loss. Its integral from 0 to n is
        # r n + (L - r N) log(1 + n / N).
        rate = tf.math.divide_no_nan(losses, weights)
        growth = tf.math.log1p(tf.math.divide_no_nan(weights, before))
        area = tf.reduce_sum(losses + (lost_before - rate * before) * growth)
        mean = tf.math.divide_no_nan(area, tf.reduce_sum(weights))
        return tf.cast(mean, self.dtype)


def row_losses(prediction: Predictive, targets: ArrayLike) -> tf.Tensor:
    """Returns the loss of each row, [rows]: see `risk_coverage_curve`."""
    if is_of_classes(prediction):
        probabilities = tf.convert_to_tensor(prediction.probabilities)
        predicted = tf.argmax(probabilities, axis=-1, output_type=tf.int32)
        losses = tf.cast(predicted != targets, tf.float64)
    else:
        losses = tf.square(tf.cast(prediction.mean, tf.float64) - targets)
    return tf.reduce_mean(losses, axis=list(range(1, len(losses.shape))))
