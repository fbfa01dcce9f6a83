"""What the metrics of a compiled `BayesianModel` compare in a step."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.private_apis import compiled_metrics, wrapped_function
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.scores.metrics.keras_metrics import (
    PredictiveMetric,
    masked_weights,
    with_rank,
)

Pair = tuple[tf.Tensor, tf.Tensor]

# Functions of Keras that compare the indices of classes with probabilities,
_OF_INDICES = {
    keras.losses.sparse_categorical_crossentropy,
    keras.metrics.sparse_categorical_accuracy,
    keras.metrics.sparse_top_k_categorical_accuracy,
}
# and one-hot classes with probabilities, along an axis of at least two classes.
_OF_ONE_HOT = {
    keras.losses.categorical_crossentropy,
    keras.losses.categorical_focal_crossentropy,
    keras.losses.categorical_hinge,
    keras.metrics.categorical_accuracy,
    keras.metrics.top_k_categorical_accuracy,
}


def update_compiled_metrics(
    model: keras.Model, comparison: "Comparison", sample_weight: Tensor | None
) -> None:
    """Updates the `metrics` and `weighted_metrics` of a model with the rows of a step.

    Masked places do not count. Keras tells only some of its metrics of a mask; here all
    of them get a weight of 0 for each masked place.
    """
    plain, weighted = compiled_metrics(model, lambda: comparison.as_given)
    weights = masked_weights(sample_weight, comparison.mask)
    for metric in plain:
        comparison.update(metric, comparison.mask)
    for metric in weighted:
        comparison.update(metric, weights)


class Comparison:
    """The targets and predictions of a step, in the forms that metrics compare.

    The prediction is the mean over draws of `Likelihood.point_prediction`, and y is
    what a plain Keras network of this output gets:

    | targets | y | prediction |
    |---|---|---|
    | numbers | [rows, places..., k] | [rows, places..., k] |
    | 0 or 1 (`Bernoulli`) | [rows, places..., 1] | of class 1, [rows, places..., 1] |
    | indices of classes | as given | [rows, places..., C] |
    | one-hot classes | as given | [rows, places..., C] |

    Keras' metrics of classes that compare another form get it: a sparse metric gets
    indices, a categorical metric one-hot classes of at least two columns, and all
    others a y of the shape of the prediction.

    The outputs of the network are [rows, S, ..., P], and the mask that of Keras, [rows,
    ...] with the first of the places. A target of weight 0 may have any value.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        targets: Tensor,
        outputs: tf.Tensor,
        mask: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ):
        self._likelihood = likelihood
        self._targets = tf.convert_to_tensor(targets)
        self._outputs = outputs
        self._given_mask = mask
        self._sample_weight = sample_weight

    @functools.cached_property
    def mask(self) -> tf.Tensor | None:
        """Whether each place counts, [rows, places...]; None if all do.

        Masked places do not, nor do those of a void class, nor those of weight 0 whose
        target is not possible.
        """
        places = tf.shape(self._outputs[:, 0, ..., 0])
        rank = len(self._outputs.shape) - 2
        aligned = self._likelihood.aligned(self._targets, self._outputs[:, 0])
        conditions = [self._likelihood.not_void(aligned)]
        if self._given_mask is not None:
            conditions.append(tf.cast(with_rank(self._given_mask, rank), tf.bool))
        if self._sample_weight is not None:
            weighted = with_rank(self._sample_weight, rank) != 0
            conditions.append(weighted | self._is_possible(aligned))
        known = [tf.broadcast_to(x, places) for x in conditions if x is not None]
        return functools.reduce(tf.logical_and, known) if known else None

    def _is_possible(self, aligned: tf.Tensor) -> tf.Tensor:
        """Returns which places have targets that the likelihood takes."""
        support = self._likelihood.support
        if support is None:
            return (aligned >= 0) & (aligned < self._likelihood.num_classes)
        values = tf.cast(aligned, tf.float64)
        inside = (values >= support.least) & (values <= support.greatest)
        return tf.reduce_all(inside, axis=-1)

    @functools.cached_property
    def as_given(self) -> Pair:
        """The pair that functions and metrics from outside Keras get."""
        if self._likelihood.task == "regression":
            return self._aligned, self._prediction
        if self._is_one_hot:
            return self._targets, self._probabilities
        is_known = self._targets.shape.rank is not None and self._targets.shape[-1]
        targets = self._targets if is_known else self._aligned
        if self.mask is not None:
            # Targets that do not count may have any values.
            targets = tf.reshape(
                tf.cast(self._aligned, targets.dtype), tf.shape(targets)
            )
        if self._prediction.shape[-1] == 1:
            targets = tf.reshape(targets, tf.shape(self._prediction))
        return targets, self._prediction

    def update(self, metric: keras.metrics.Metric, weights: Tensor | None) -> None:
        """Updates a metric with the pair that it compares."""
        if weights is not None and weights.dtype == tf.bool:
            weights = keras.ops.cast(weights, metric.dtype)
        if isinstance(metric, PredictiveMetric):
            targets = self._targets if self.mask is None else self._aligned
            metric.update_state(targets, self._prediction, weights)
            return
        y_true, y_pred = self.pair(metric)
        if weights is not None and not isinstance(metric, keras.metrics.Mean):
            # They take the weights of whole rows for rows of one place only.
            rank = len(self._outputs.shape) - 2
            shape = tf.shape(self._outputs[:, 0, ..., 0])
            if len(weights.shape) < rank:
                weights = tf.broadcast_to(with_rank(weights, rank), shape)
        metric.update_state(y_true, y_pred, sample_weight=weights)

    def pair(self, metric: keras.metrics.Metric) -> Pair:
        """Returns targets and predictions in the form that a metric compares."""
        if self._likelihood.task == "regression":
            return self.as_given
        function = wrapped_function(metric)
        _check_probabilities(metric, function)
        function = getattr(function, "fn", function)
        owner = function if type(metric) is keras.metrics.MeanMetricWrapper else metric
        if not (getattr(owner, "__module__", None) or "").startswith("keras."):
            return self.as_given
        if function in _OF_INDICES:
            return self._aligned, self._probabilities
        if function in _OF_ONE_HOT:
            return self._one_hot, self._probabilities
        if isinstance(metric, keras.metrics.Accuracy):
            return self._aligned, self._predicted
        if isinstance(metric, keras.metrics.IoU) and not isinstance(
            metric, keras.metrics.BinaryIoU
        ):
            return (
                self._aligned if metric.sparse_y_true else self._one_hot,
                self._predicted if metric.sparse_y_pred else self._probabilities,
            )
        if self._prediction.shape[-1] == 1:
            return self.as_given
        return self._one_hot, self._probabilities

    @functools.cached_property
    def _aligned(self) -> tf.Tensor:
        """The numbers [rows, places..., k], or the indices of classes."""
        aligned = self._likelihood.aligned(self._targets, self._outputs[:, 0])
        if self.mask is None:
            return aligned
        return self._likelihood.with_placeholders(aligned, self.mask)

    @functools.cached_property
    def _prediction(self) -> tf.Tensor:
        return self._average(self._likelihood.point_prediction)

    @functools.cached_property
    def _probabilities(self) -> tf.Tensor:
        if self._prediction.shape[-1] == self._likelihood.num_classes:
            return self._prediction
        return self._average(self._likelihood.probabilities)

    @functools.cached_property
    def _predicted(self) -> tf.Tensor:
        return tf.argmax(self._probabilities, axis=-1, output_type=tf.int32)

    @functools.cached_property
    def _one_hot(self) -> tf.Tensor:
        num_classes = self._likelihood.num_classes
        return tf.one_hot(self._aligned, num_classes, dtype=self._prediction.dtype)

    @property
    def _is_one_hot(self) -> bool:
        width = self._likelihood.width_of(self._targets, self._outputs[:, 0])
        return width == self._likelihood.num_classes

    def _average(self, compute: Callable[[Tensor], tf.Tensor]) -> tf.Tensor:
        of_draws = compute(self._outputs)
        if self._outputs.shape[1] == 1:
            return of_draws[:, 0]
        return tf.reduce_mean(of_draws, axis=1)


def _check_probabilities(metric: keras.metrics.Metric, function: Any) -> None:
    """Raises ValueError for a metric that would take predictions for logits."""
    from_logits = getattr(metric, "from_logits", False)
    from_logits |= getattr(function, "from_logits", False)
    if isinstance(metric, keras.metrics.AUC):
        from_logits |= metric.get_config()["from_logits"]
    if from_logits:
        raise ValueError(
            "Metrics of a BayesianModel get probabilities, also where the network ends "
            f"in logits. Leave `from_logits` of '{metric.name}' out. "
            "Received: from_logits=True"
        )
    if type(metric) is keras.metrics.BinaryAccuracy and not 0 < metric.threshold < 1:
        raise ValueError(
            "Metrics of a BayesianModel get probabilities, also where the network ends "
            f"in logits. Leave `threshold` of '{metric.name}' out, or give a "
            f"probability. Received: threshold={metric.threshold}"
        )
