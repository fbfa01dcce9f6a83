"""The base of Keras metrics that score a predictive distribution."""

from typing import Any, TypeVar

import keras
import tensorflow as tf

from tfbbb.base.call_context import current_call
from tfbbb.base.documented_arguments import document_inherited_arguments
from tfbbb.base.private_apis import mask_of
from tfbbb.base.types import ArrayLike, DType, Tensor
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes
from tfbbb.scores.metrics.arguments import with_arguments
from tfbbb.scores.metrics.targets import Scored, check_kind, checked_targets

Metric = TypeVar("Metric", bound="PredictiveMetric")


class PredictiveMetric(keras.metrics.Metric):
    """A Keras metric of predictive distributions, not only of their means.

    Compiled into a `tfbbb.BayesianModel`, the metric scores the mixture of the draws of
    each step in `fit` and `evaluate`. With one posterior and one draw per step this is
    the likelihood under that draw, without epistemic uncertainty. To evaluate a trained
    model, pass a prediction of many draws to the same metric:
    `metric.update_state(y, model.predictive(x))`.

    To write a metric, set `scored` and override `accumulate`.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, members=3)
    >>> mixture_nll = tfbbb.metrics.NegativeLogLikelihood("mixture_nll")
    >>> model.compile(metrics=[mixture_nll, tfbbb.metrics.IntervalCoverage(0.9)])

    Args:
        name: Name of the metric.
        dtype: Dtype of its sums.

    Attributes:
        scored: The predictions for which the metric is defined: `"numbers"`,
            `"classes"`, `"ordered"` (predictions with quantiles), or `"any"`.
        default_name: Default name of the metric. If None, Keras derives one from the
            class.
    """

    scored: Scored = "any"
    default_name: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        document_inherited_arguments(cls)

    def __init__(self, name: str | None = None, dtype: DType = None):
        super().__init__(name=name or self.default_name, dtype=dtype)

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
        step = current_call().prediction
        # A tensor of `tfbbb.lab.compat` has the methods of its distribution, too.
        if not tf.is_tensor(y_pred) and hasattr(y_pred, "aleatoric"):
            prediction = y_pred
            targets = checked_targets(
                prediction, y_true, self.scored, self.name, by_place=True
            )
            sample_weight = masked_weights(
                sample_weight, getattr(prediction, "mask", None)
            )
        else:
            if step is None:
                sample_weight = masked_weights(sample_weight, mask_of(y_pred))
            prediction = self.of_mean(y_pred) if step is None else step
            check_kind(prediction, self.scored, self.name)
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
        self.accumulate(prediction, targets, weights)

    def accumulate(
        self, prediction: Predictive, targets: tf.Tensor, weights: tf.Tensor
    ) -> None:
        """Adds the rows of a prediction to the state.

        Args:
            prediction: An object with the attributes of `tfbbb.Predictive`, as arrays
                or tensors.
            targets: float64 [rows, ..., k], or class indices [rows, ...].
            weights: float64 [rows], or [rows, places...].
        """
        raise NotImplementedError

    def of_mean(self, y_pred: Tensor) -> Any:
        """Returns the prediction of a plain Keras model, which predicts only a mean."""
        raise ValueError(
            f"`{type(self).__name__}` scores a predictive distribution, but a plain "
            "Keras model predicts only the mean. Compile a `tfbbb.BayesianModel` with "
            "this metric, or call `update_state(y, prediction)` with a "
            f"`tfbbb.Predictive`. Received: y_pred of type {type(y_pred).__name__}"
        )


def public_metric(metric: type[Metric]) -> type[Metric]:
    """Registers a metric with Keras, and lists its arguments in its docstring."""
    register = keras.saving.register_keras_serializable(package="tfbbb.metrics")
    return register(with_arguments(metric))


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
