"""The calibration of quantiles."""

from collections.abc import Sequence
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Config, DType
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import cdf_step, is_discrete
from tfbbb.scores.metrics.pit import pit_values
from tfbbb.scores.metrics.predictive_metric import PredictiveMetric

_LEVELS = tuple(np.linspace(0.05, 0.95, 19).round(2).tolist())


@dataclass(frozen=True)
class CalibrationCurve:
    """The share of targets below each quantile, or within each central interval.

    Attributes:
        expected: Levels, [Q].
        observed: Shares of the targets, [Q]. For a calibrated prediction they equal
            `expected`, up to chance.
    """

    expected: np.ndarray
    observed: np.ndarray


def calibration_curve(
    prediction: Predictive,
    y: ArrayLike,
    levels: Sequence[float] | None = None,
    *,
    central: bool = False,
    seed: int = 0,
    sample_weight: ArrayLike = None,
) -> CalibrationCurve:
    """Computes the share of targets below each quantile (Kuleshov et al. 2018).

    `observed_q = mean(1{F(y) <= expected_q})`, over rows and targets. With `central` it
    is the share of targets within the central interval of that probability. For a
    calibrated prediction of n targets the standard deviation of the observed share is
    `sqrt(level (1 - level) / n)`.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> tfbbb.metrics.calibration_curve(
    ...     prediction, prediction.quantile(0.3), [0.25, 0.5]
    ... )
    CalibrationCurve(expected=array([0.25, 0.5 ]), observed=array([0., 1.]))

    Args:
        prediction: A `tfbbb.Predictive` of numbers, counts or ordered classes.
        y: Targets in raw units, [rows, k] (or [rows] for one target).
        levels: Probabilities strictly between 0 and 1; by default 0.05, 0.1, ..., 0.95.
        central: Whether `levels` are of central intervals instead of quantiles.
        seed: Seed for counts and ordered classes: see `pit_values`.
        sample_weight: The weight of each row, [rows]; None for 1.

    Raises:
        ValueError: The prediction is of classes without an order, the targets do not
            fit the prediction, or a level is not strictly between 0 and 1.
    """
    expected = _validate_levels(_LEVELS if levels is None else levels)
    by_row = pit_values(prediction, y, seed=seed)
    values = by_row.reshape(-1)
    if central:
        values = np.abs(2.0 * values - 1.0)
    order = np.argsort(values)
    below = np.searchsorted(values[order], expected, side="right")
    observed = below / len(values)
    if sample_weight is not None:
        per_row = values.size // len(by_row)
        weights = np.repeat(np.asarray(sample_weight, np.float64), per_row)[order]
        observed = np.append(0.0, np.cumsum(weights))[below] / weights.sum()
    return CalibrationCurve(expected=expected, observed=observed)


def calibration_error(
    prediction: Predictive,
    y: ArrayLike,
    levels: Sequence[float] | None = None,
    *,
    central: bool = False,
    seed: int = 0,
    sample_weight: ArrayLike = None,
) -> float:
    """Computes the mean over levels of `(expected - observed)^2`.

    This is the calibration error of Kuleshov et al. (2018, eq. 9) with the weight 1/Q
    for each of Q levels. For a calibrated prediction of n targets its expectation is
    not 0 but the mean of `level (1 - level) / n`, 0.175 / n for the default levels.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> tfbbb.metrics.calibration_error(prediction, prediction.mean, [0.2, 0.6])
    0.1

    Args:
        prediction: A `tfbbb.Predictive` of numbers, counts or ordered classes.
        y: Targets in raw units, [rows, k] (or [rows] for one target).
        levels: Probabilities strictly between 0 and 1; by default 0.05, 0.1, ..., 0.95.
        central: Whether `levels` are of central intervals instead of quantiles.
        seed: Seed for counts and ordered classes: see `pit_values`.
        sample_weight: As for `calibration_curve`.

    Raises:
        ValueError: As for `calibration_curve`.
    """
    curve = calibration_curve(
        prediction, y, levels, central=central, seed=seed, sample_weight=sample_weight
    )
    return float(np.mean((curve.expected - curve.observed) ** 2))


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class CalibrationError(PredictiveMetric):
    """`calibration_error` of quantiles as a Keras metric.

    Counts the targets of all minibatches. For counts and ordered classes the function
    draws a value within the step of F at random; the metric adds the expectation of
    that draw instead.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> model.compile(metrics=[tfbbb.metrics.CalibrationError()])

    Args:
        levels: Probabilities strictly between 0 and 1; by default 0.05, 0.1, ..., 0.95.
        name: Name of the metric.
        dtype: Type of its state.
    """

    scored = "ordered"
    default_name = "calibration_error"

    def __init__(
        self,
        levels: Sequence[float] | None = None,
        name: str | None = None,
        dtype: DType = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.levels = _validate_levels(_LEVELS if levels is None else levels).tolist()
        self.below = self.add_variable((len(self.levels),), "zeros", name="below")
        self.weight = self.add_variable((), "zeros", name="weight")

    def accumulate(
        self, prediction: Predictive, targets: tf.Tensor, weights: tf.Tensor
    ) -> None:
        below, up_to = (part[..., tf.newaxis] for part in cdf_step(prediction, targets))
        levels = tf.constant(self.levels, tf.float64)
        if is_discrete(prediction):
            share = tf.math.divide_no_nan(levels - below, up_to - below)
            share = tf.where(levels >= up_to, tf.ones_like(share), share)
            inside = tf.clip_by_value(share, 0.0, 1.0)
        else:
            inside = tf.cast(up_to <= levels, tf.float64)
        axes = range(len(weights.shape), len(inside.shape) - 1)
        inside = tf.reduce_mean(inside, axis=list(axes))
        counts = tf.tensordot(weights, inside, len(weights.shape))
        self.below.assign_add(tf.cast(counts, self.dtype))
        self.weight.assign_add(tf.cast(tf.reduce_sum(weights), self.dtype))

    def result(self) -> tf.Tensor:
        weight = tf.convert_to_tensor(self.weight)
        observed = tf.math.divide_no_nan(tf.convert_to_tensor(self.below), weight)
        squares = tf.square(observed - tf.constant(self.levels, observed.dtype))
        return tf.where(weight > 0.0, tf.reduce_mean(squares), tf.zeros_like(weight))

    def get_config(self) -> Config:
        return {**super().get_config(), "levels": self.levels}


def _validate_levels(levels: Sequence[float]) -> np.ndarray:
    values = np.asarray(levels, dtype=np.float64)
    inside = (values > 0.0) & (values < 1.0)
    if values.ndim != 1 or not len(values) or not inside.all():
        raise ValueError(
            "`levels` must be at least one probability strictly between 0 and 1. "
            f"Received: levels={levels!r}"
        )
    return values
