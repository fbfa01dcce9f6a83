"""Keras metrics that average a score over rows."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import Config, DType, Tensor
from tfbbb.prediction.levels import checked_level, checked_levels
from tfbbb.prediction.result import Predictive
from tfbbb.scores.metrics.calibration import LEVELS
from tfbbb.scores.metrics.point_prediction import (
    PredictedNumbers,
    PredictedProbabilities,
)
from tfbbb.scores.metrics.predictive_metric import PredictiveMetric, public_metric
from tfbbb.scores.metrics.row_scores import SCORES, summed_over_places


class MeanScore(PredictiveMetric):
    """The weighted mean of a score over rows; subclasses override `score`.

    With weights of places, it is the weighted mean over places.

    Args:
        shape: Shape of the score of one target; `()` for a number.
    """

    def __init__(
        self, name: str | None = None, dtype: DType = None, shape: Sequence[int] = ()
    ):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable(shape, "zeros", name="total")
        self.weight = self.add_variable((), "zeros", name="weight")

    def score(self, prediction: Predictive, targets: tf.Tensor) -> tf.Tensor:
        """Returns the scores of a prediction, [rows, ..., *shape]."""
        raise NotImplementedError

    def finish(self, mean: tf.Tensor) -> tf.Tensor:
        """Returns the result from the mean over rows, [*shape]."""
        return mean

    def accumulate(
        self, prediction: Predictive, targets: tf.Tensor, weights: tf.Tensor
    ) -> None:
        scores = tf.cast(self.score(prediction, targets), weights.dtype)
        rank, end = len(weights.shape), len(scores.shape) - len(self.total.shape)
        scores = tf.reduce_mean(scores, axis=list(range(rank, end)))
        self.add(tf.tensordot(weights, scores, rank), tf.reduce_sum(weights))

    def add(self, total: tf.Tensor, weight: tf.Tensor) -> None:
        """Adds a sum of weighted scores and the sum of their weights."""
        self.total.assign_add(tf.cast(total, self.dtype))
        self.weight.assign_add(tf.cast(weight, self.dtype))

    def result(self) -> tf.Tensor:
        total, weight = map(tf.convert_to_tensor, (self.total, self.weight))
        score = self.finish(tf.math.divide_no_nan(total, weight))
        return tf.where(weight > 0.0, score, tf.zeros_like(score))


class TableScore(MeanScore):
    """The score of the table `SCORES` whose name is `default_name`.

    Attributes:
        options: Names of the attributes that its rows take.
    """

    default_name: str
    options: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.default_name in SCORES:
            cls.scored = SCORES[cls.default_name].scored

    def score(self, prediction: Predictive, targets: tf.Tensor) -> tf.Tensor:
        options = {name: getattr(self, name) for name in self.options}
        return SCORES[self.default_name].rows(prediction, targets, **options)

    def finish(self, mean: tf.Tensor) -> tf.Tensor:
        return SCORES[self.default_name].finish(mean)

    def get_config(self) -> Config:
        options = {name: getattr(self, name) for name in self.options}
        return {**super().get_config(), **options}


@public_metric
class BrierScore(TableScore):
    """`brier_score` as a Keras metric, also for plain Keras models.

    Example:

    >>> import tfbbb
    >>> metric = tfbbb.metrics.BrierScore()
    >>> metric.update_state([1], [[0.4, 0.6]])
    >>> float(metric.result())
    0.16
    """

    default_name = "brier_score"

    def __init__(
        self, from_logits: bool = False, name: str | None = None, dtype: DType = None
    ):
        super().__init__(name=name, dtype=dtype)
        self.from_logits = from_logits

    def of_mean(self, y_pred: Tensor) -> PredictedProbabilities:
        return PredictedProbabilities(y_pred, self.from_logits)

    def get_config(self) -> Config:
        return {**super().get_config(), "from_logits": self.from_logits}


@public_metric
class CalibrationError(TableScore):
    """`calibration_error` of quantiles as a Keras metric.

    Counts the targets of all minibatches. For counts and ordered classes the function
    draws a value within the step of F at random; the metric adds the expectation of
    that draw instead.
    """

    default_name = "calibration_error"
    options = ("levels",)

    def __init__(
        self,
        levels: Sequence[float] | None = None,
        name: str | None = None,
        dtype: DType = None,
    ):
        checked = checked_levels(LEVELS if levels is None else levels).tolist()
        super().__init__(name=name, dtype=dtype, shape=(len(checked),))
        self.levels = checked


@public_metric
class CRPS(TableScore):
    """`crps` as a Keras metric.

    With several draws per step, the metric inverts a distribution function in every
    step, which takes longer than a training step of a small network.
    """

    default_name = "crps"


@public_metric
class ExpectedCalibrationError(TableScore):
    """`expected_calibration_error` as a Keras metric, also for plain Keras models.

    All minibatches fill the same bins.

    Example:

    >>> import tfbbb
    >>> metric = tfbbb.metrics.ExpectedCalibrationError()
    >>> metric.update_state([1, 0], [[0.25, 0.75], [0.25, 0.75]])
    >>> float(metric.result())
    0.25
    """

    default_name = "expected_calibration_error"
    options = ("bins",)

    def __init__(
        self,
        bins: int = 15,
        from_logits: bool = False,
        name: str | None = None,
        dtype: DType = None,
    ):
        super().__init__(name, dtype, shape=(positive_integer("bins", bins),))
        self.bins = bins
        self.from_logits = from_logits

    def of_mean(self, y_pred: Tensor) -> PredictedProbabilities:
        return PredictedProbabilities(y_pred, self.from_logits)

    def get_config(self) -> Config:
        return {**super().get_config(), "from_logits": self.from_logits}


class IntervalScore(TableScore):
    """A score of central intervals of one level."""

    options = ("level",)

    def __init__(
        self, level: float = 0.9, name: str | None = None, dtype: DType = None
    ):
        super().__init__(name=name, dtype=dtype)
        self.level = checked_level(level)


@public_metric
class IntervalCoverage(IntervalScore):
    """`interval_coverage` as a Keras metric."""

    default_name = "interval_coverage"


@public_metric
class IntervalWidth(IntervalScore):
    """`interval_width` as a Keras metric, which takes as long as `CRPS`."""

    default_name = "interval_width"


@public_metric
class NegativeLogLikelihood(TableScore):
    """`negative_log_likelihood` as a Keras metric.

    In a step of a `tfbbb.BayesianModel`, `nll` is the mean of `-log p(y | x, w)` over
    the draws, a term of the objective. This metric is `-log` of the mean of
    `p(y | x, w)` over the draws: by Jensen's inequality it is never larger, and for one
    draw it is the same.

    The score of a row is the sum over its places. Masked places add nothing. Weights of
    places multiply the summands; the weight of the row is then their mean over the
    places that are not masked.
    """

    default_name = "negative_log_likelihood"

    def accumulate(
        self, prediction: Predictive, targets: tf.Tensor, weights: tf.Tensor
    ) -> None:
        if len(weights.shape) == 1:
            super().accumulate(prediction, targets, weights)
            return
        scores = -tf.convert_to_tensor(prediction.log_prob(targets))
        mask = getattr(prediction, "mask", None)
        kept = tf.ones_like(weights) if mask is None else tf.cast(mask, tf.float64)
        of_rows = tf.math.divide_no_nan(
            summed_over_places(weights), summed_over_places(kept)
        )
        self.add(tf.reduce_sum(weights * scores), tf.reduce_sum(of_rows))


@public_metric
class RootMeanSquaredError(TableScore):
    """`root_mean_squared_error` as a Keras metric, also for plain Keras models.

    Example:

    >>> import tfbbb
    >>> metric = tfbbb.metrics.RootMeanSquaredError()
    >>> metric.update_state([[1.0], [2.0]], [[4.0], [6.0]])
    >>> float(metric.result())  # sqrt((9 + 16) / 2)
    3.5355
    """

    default_name = "root_mean_squared_error"

    def of_mean(self, y_pred: Tensor) -> PredictedNumbers:
        return PredictedNumbers(y_pred)
