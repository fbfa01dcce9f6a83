"""The scores of the table as Keras metrics."""

from collections.abc import Sequence
from typing import Any, TypeVar

import keras
import tensorflow as tf

from tfbbb.base.call_context import current_call
from tfbbb.base.numbers import choice
from tfbbb.base.types import ArrayLike, Config, DType, Tensor
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes
from tfbbb.scores.metrics.arguments import with_arguments
from tfbbb.scores.metrics.row_scores import SCORES, summed_over_places
from tfbbb.scores.metrics.targets import check_kind, checked_targets

Metric = TypeVar("Metric", bound="PredictiveMetric")


def public_metric(metric: type[Metric]) -> type[Metric]:
    """Registers a metric with Keras, and lists its arguments in its docstring."""
    register = keras.saving.register_keras_serializable(package="tfbbb.metrics")
    return register(with_arguments(metric))


@public_metric
class PredictiveMetric(keras.metrics.Metric):
    """A score of predictive distributions, not only of their means, by its name.

    It is the weighted mean over rows, with weights of places over places.

    Compiled into a `tfbbb.BayesianModel`, the metric scores the mixture of the draws of
    each step in `fit` and `evaluate`. With one posterior and one draw per step this is
    the likelihood under that draw, without epistemic uncertainty. To evaluate a trained
    model, pass a prediction of many draws to the same metric:
    `metric.update_state(y, model.predictive(x))`.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, members=3)
    >>> mixture_nll = tfbbb.metrics.PredictiveMetric("negative_log_likelihood")
    >>> model.compile(metrics=[mixture_nll, tfbbb.metrics.IntervalCoverage(0.9)])

    Args:
        score: Name of the function of `tfbbb.metrics`.
        name: Name of the metric; that of the score by default.
        dtype: Dtype of its sums.
        options: The options of the function: `level`, `levels` or `bins`.
    """

    def __init__(
        self, score: str, name: str | None = None, dtype: DType = None, **options: Any
    ):
        choice("score", score, SCORES)
        super().__init__(name=name or score, dtype=dtype)
        self._score_name, self._score = score, SCORES[score]
        self._options = self._score.checked(options)
        shape = self._score.shape(**self._options)
        self.total = self.add_variable(shape, "zeros", name="total")
        self.weight = self.add_variable((), "zeros", name="weight")

    def get_config(self) -> Config:
        own = {"score": self._score_name} if type(self) is PredictiveMetric else {}
        return {**super().get_config(), **own, **self._options}

    def update_state(
        self, y_true: ArrayLike, y_pred: Tensor, sample_weight: ArrayLike = None
    ) -> None:
        """Adds the rows of a minibatch or of a prediction.

        Args:
            y_true: Targets in raw units.
            y_pred: A `tfbbb.Predictive`, or the mean that Keras passes.
            sample_weight: [rows], or [rows, places...] for rows of several places,
                such as the steps of a sequence; None for 1.

        Raises:
            ValueError: The metric is not defined for the prediction, or the targets do
                not fit the prediction.
        """
        prediction: Any = current_call().prediction
        # A tensor of `tfbbb.lab.compat` has the methods of its distribution, too.
        if not tf.is_tensor(y_pred) and hasattr(y_pred, "aleatoric"):
            prediction = y_pred
            targets = checked_targets(
                prediction, y_true, self._score.scored, self.name, by_place=True
            )
            sample_weight = masked_weights(
                sample_weight, getattr(prediction, "mask", None)
            )
        elif prediction is None:
            raise ValueError(
                f"`{type(self).__name__}` scores a predictive distribution, but a "
                "plain Keras model predicts only the mean. Compile a "
                "`tfbbb.BayesianModel` with this metric, or call "
                "`update_state(y, prediction)` with a `tfbbb.Predictive`. "
                f"Received: y_pred of type {type(y_pred).__name__}"
            )
        else:
            check_kind(prediction, self._score.scored, self.name)
            targets = prediction.aligned(y_true)
        targets = tf.convert_to_tensor(targets)
        rank = (
            len(targets.shape) if is_of_classes(prediction) else targets.shape.rank - 1
        )
        places = tf.shape(targets)[:rank]
        if sample_weight is None:
            weights = tf.ones(places[:1], tf.float64)
        else:
            weights = tf.cast(sample_weight, tf.float64)
            of_rows = rank == 1 or len(weights.shape) < rank
            weights = tf.reshape(weights, places[:1] if of_rows else places)
        self._accumulate(prediction, targets, weights)

    def _accumulate(
        self, prediction: Predictive, targets: tf.Tensor, weights: tf.Tensor
    ) -> None:
        """Adds targets, [rows, ..., k] or classes [rows, ...], by their weights."""
        if self._score.is_joint and len(weights.shape) > 1:
            # Weights of places multiply the summands of a row.
            total = tf.reduce_sum(weights * -prediction.log_prob(targets))
            mask = getattr(prediction, "mask", None)
            kept = tf.ones_like(weights) if mask is None else tf.cast(mask, tf.float64)
            weights = tf.math.divide_no_nan(
                summed_over_places(weights), summed_over_places(kept)
            )
        else:
            rows = self._score.rows(prediction, targets, **self._options)
            rows = tf.cast(rows, weights.dtype)
            rank, end = len(weights.shape), len(rows.shape) - len(self.total.shape)
            rows = tf.reduce_mean(rows, axis=list(range(rank, end)))
            total = tf.tensordot(weights, rows, rank)
        self.total.assign_add(tf.cast(total, self.dtype))
        self.weight.assign_add(tf.cast(tf.reduce_sum(weights), self.dtype))

    def result(self) -> tf.Tensor:
        total, weight = map(tf.convert_to_tensor, (self.total, self.weight))
        score = self._score.finish(tf.math.divide_no_nan(total, weight))
        return tf.where(weight > 0.0, score, tf.zeros_like(score))


@public_metric
class BrierScore(PredictiveMetric):
    """`brier_score` as a Keras metric."""

    def __init__(self, name: str | None = None, dtype: DType = None):
        super().__init__("brier_score", name, dtype)


@public_metric
class CalibrationError(PredictiveMetric):
    """`calibration_error` of quantiles as a Keras metric.

    Counts the targets of all minibatches. For counts and grades the function
    draws a value within the step of F at random; the metric adds the expectation of
    that draw instead.
    """

    def __init__(
        self,
        levels: Sequence[float] | None = None,
        name: str | None = None,
        dtype: DType = None,
    ):
        super().__init__("calibration_error", name, dtype, levels=levels)


@public_metric
class CRPS(PredictiveMetric):
    """`crps` as a Keras metric.

    With several draws per step, the metric inverts a distribution function in every
    step, which takes longer than a training step of a small network.
    """

    def __init__(self, name: str | None = None, dtype: DType = None):
        super().__init__("crps", name, dtype)


@public_metric
class ExpectedCalibrationError(PredictiveMetric):
    """`expected_calibration_error` as a Keras metric.

    All minibatches fill the same bins.
    """

    def __init__(self, bins: int = 15, name: str | None = None, dtype: DType = None):
        super().__init__("expected_calibration_error", name, dtype, bins=bins)


@public_metric
class IntervalCoverage(PredictiveMetric):
    """`interval_coverage` as a Keras metric."""

    def __init__(
        self, level: float = 0.9, name: str | None = None, dtype: DType = None
    ):
        super().__init__("interval_coverage", name, dtype, level=level)


@public_metric
class IntervalWidth(PredictiveMetric):
    """`interval_width` as a Keras metric, which takes as long as `CRPS`."""

    def __init__(
        self, level: float = 0.9, name: str | None = None, dtype: DType = None
    ):
        super().__init__("interval_width", name, dtype, level=level)


@public_metric
class NegativeLogLikelihood(PredictiveMetric):
    """`negative_log_likelihood` as a Keras metric.

    In a step of a `tfbbb.BayesianModel`, `nll` is the mean of `-log p(y | x, w)` over
    the draws, a term of the objective. This metric is `-log` of the mean of
    `p(y | x, w)` over the draws: by Jensen's inequality it is never larger, and for one
    draw it is the same.

    The score of a row is the sum over its places. Masked places add nothing. Weights of
    places multiply the summands; the weight of the row is then their mean over the
    places that are not masked.
    """

    def __init__(self, name: str | None = None, dtype: DType = None):
        super().__init__("negative_log_likelihood", name, dtype)


@public_metric
class RootMeanSquaredError(PredictiveMetric):
    """`root_mean_squared_error` as a Keras metric."""

    def __init__(self, name: str | None = None, dtype: DType = None):
        super().__init__("root_mean_squared_error", name, dtype)


def masked_weights(weights: ArrayLike, mask: Tensor | None) -> Any:
    """Returns weights that are 0 where the mask, [rows, places...], is False."""
    if mask is None or weights is None:
        return weights if mask is None else mask
    weights = with_rank(tf.convert_to_tensor(weights), len(mask.shape))
    return tf.where(mask, weights, tf.zeros_like(weights))


def with_rank(weights: tf.Tensor, rank: int) -> tf.Tensor:
    """Returns weights with axes of size 1 at their end, of `rank` axes in all."""
    missing = rank - len(weights.shape)
    return tf.reshape(weights, tf.concat([tf.shape(weights), [1] * missing], 0))
