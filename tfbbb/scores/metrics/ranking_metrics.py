"""Keras metrics that rank rows by their uncertainty."""

import math

import numpy as np
import tensorflow as tf

from tfbbb.base.call_context import current_call
from tfbbb.base.types import ArrayLike, Config, DType, Tensor
from tfbbb.prediction.result import Predictive
from tfbbb.scores.metrics.predictive_metric import PredictiveMetric, public_metric
from tfbbb.scores.metrics.ranking import (
    check_uncertainty,
    named_uncertainty,
    row_losses,
    uncertainty,
)

# An uncertainty may have any unit, so bins have equal width in its logarithm: 0.14 %
# each, from 4e-15 to 3e14.
_BINS_PER_OCTAVE = 512
_OCTAVES = 48
_BINS = 2 * _OCTAVES * _BINS_PER_OCTAVE


class RankedByUncertainty(PredictiveMetric):
    """Sums weights and values of rows in narrow bins of their uncertainty.

    The bins replace storing all rows: rows in the same bin, whose uncertainties differ
    by less than 0.14 %, count as equally uncertain.
    """

    of_numbers: str

    def __init__(
        self, by: str | None = None, name: str | None = None, dtype: DType = None
    ):
        super().__init__(name=name, dtype=dtype)
        self.by = check_uncertainty(by)
        self.weights = self.add_variable((_BINS,), "zeros", name="weights")
        self.values = self.add_variable((_BINS,), "zeros", name="values")

    def add(
        self, prediction: Predictive, values: tf.Tensor, weights: tf.Tensor
    ) -> None:
        """Adds the values [rows] and weights [rows] of rows to their bins."""
        if len(weights.shape) > 1:
            raise ValueError(
                f"`{self.name}` ranks whole rows by their uncertainty, so it takes no "
                "weights and no mask of their steps. Choose another metric, or give "
                f"each row one weight. Received: weights of shape {weights.shape}"
            )
        by = named_uncertainty(prediction, self.by, self.of_numbers)
        octaves = tf.math.log(uncertainty(prediction, by)) / math.log(2.0) + _OCTAVES
        # The logarithm of 0 is minus infinity, which has no integer.
        position = tf.clip_by_value(octaves * _BINS_PER_OCTAVE, 0.0, _BINS - 1.0)
        index = tf.cast(position, tf.int32)
        for variable, summands in (
            (self.weights, weights),
            (self.values, weights * tf.cast(values, weights.dtype)),
        ):
            summed = tf.math.unsorted_segment_sum(summands, index, _BINS)
            variable.assign_add(tf.cast(summed, self.dtype))

    def get_config(self) -> Config:
        return {**super().get_config(), "by": self.by}


@public_metric
class AreaUnderRiskCoverage(RankedByUncertainty):
    """`area_under_risk_coverage` as a Keras metric.

    Weights each row by its sample weight, and takes coverage as continuous: integrates
    the risk instead of averaging it over rows.
    """

    default_name = "area_under_risk_coverage"
    of_numbers = "variance"

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


class OutOfDistributionMetric(RankedByUncertainty):
    """The base of both metrics: a target of 1 marks a row from outside."""

    of_numbers = "epistemic"

    def update_state(
        self, y_true: ArrayLike, y_pred: Tensor, sample_weight: ArrayLike = None
    ) -> None:
        """Adds the rows of a minibatch or of a prediction.

        Args:
            y_true: 1 for each row from outside, else 0, [rows] or [rows, 1].
            y_pred: A `tfbbb.Predictive`, or the mean that Keras passes.
            sample_weight: [rows], or None for 1.
        """
        step = current_call().prediction
        if not tf.is_tensor(y_pred) and hasattr(y_pred, "aleatoric"):
            prediction = y_pred
            marks = _validate_marks(y_true, len(y_pred.mean))
        else:
            prediction = self.of_mean(y_pred) if step is None else step
            marks = tf.reshape(y_true, tf.shape(prediction.mean)[:1])
        marks = tf.cast(marks, tf.float64)
        weights = tf.ones_like(marks)
        if sample_weight is not None:
            weights = tf.cast(sample_weight, tf.float64)
            if weights.shape[1:] == [1]:
                weights = weights[:, 0]
        self.add(prediction, marks, weights)

    def _outside_and_inside(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the weights of rows, [bins] each, the most uncertain first."""
        outside = tf.convert_to_tensor(self.values)[::-1]
        return outside, tf.convert_to_tensor(self.weights)[::-1] - outside


@public_metric
class OutOfDistributionAUROC(OutOfDistributionMetric):
    """`out_of_distribution_auroc` as a Keras metric.

    The targets are marks, 1 for each row from outside and 0 for others. Compile a model
    with this metric only for `evaluate(x, marks)`, whose loss and nll then have no
    meaning. A model of one posterior has one draw per step and so no epistemic
    uncertainty there.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> metric = tfbbb.metrics.OutOfDistributionAUROC()
    >>> metric.update_state([0, 1], model.predictive([[0.1, 0.1], [9.0, 9.0]]))
    >>> float(metric.result())
    1.0
    """

    default_name = "out_of_distribution_auroc"

    def result(self) -> tf.Tensor:
        outside, inside = self._outside_and_inside()
        less_certain = tf.cumsum(outside, exclusive=True) + outside / 2.0
        pairs = tf.reduce_sum(outside) * tf.reduce_sum(inside)
        return tf.math.divide_no_nan(tf.reduce_sum(inside * less_certain), pairs)


@public_metric
class OutOfDistributionAUPR(OutOfDistributionMetric):
    """`out_of_distribution_aupr` as a Keras metric.

    The targets are marks: see `OutOfDistributionAUROC`.
    """

    default_name = "out_of_distribution_aupr"

    def result(self) -> tf.Tensor:
        outside, inside = self._outside_and_inside()
        found, taken = tf.cumsum(outside), tf.cumsum(outside + inside)
        precision = tf.math.divide_no_nan(found, taken)
        return tf.math.divide_no_nan(
            tf.reduce_sum(outside * precision), tf.reduce_sum(outside)
        )


def _validate_marks(y: ArrayLike, rows: int) -> np.ndarray:
    marks = np.asarray(y)
    if marks.shape not in ((rows,), (rows, 1)) or not np.isin(marks, (0, 1)).all():
        raise ValueError(
            f"The targets must be {rows} marks: 1 for each row from outside, else 0. "
            f"Received: {y!r}"
        )
    return marks.reshape(rows)
