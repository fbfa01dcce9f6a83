"""The base of Keras metrics that score a predictive distribution."""

from typing import Any

import keras
import tensorflow as tf

from tfbbb.metrics.step_prediction import current_prediction
from tfbbb.metrics.targets import Scored, check_kind, checked_targets


class PredictiveMetric(keras.metrics.Metric):
    """A Keras metric of predictive distributions and not of their means alone.

    Compiled into a `tfbbb.BayesianModel` it scores, in `fit` and `evaluate`, the
    mixture of the draws of each step: with one draw of one posterior the likelihood
    under that draw, which no mixture has made wider. A trained model is judged by a
    prediction of many draws, to which the same object can be put:
    `metric.update_state(y, model.predictive(x))`.

    A metric of one's own sets `scored` and overrides `accumulate`.

    Attributes:
        scored: What it is defined for: `"numbers"`, `"classes"`, `"ordered"` (what has
            quantiles), or `"any"`.
        default_name: Name of a metric that is given none; Keras makes one of its class'
            where this is None.
    """

    scored: Scored = "any"
    default_name: str | None = None

    def __init__(self, name: str | None = None, dtype: Any = None):
        super().__init__(name=name or self.default_name, dtype=dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Takes in the rows of a minibatch, or of a prediction.

        Args:
            y_true: Targets in raw units.
            y_pred: A `tfbbb.Predictive`, or what Keras gives, the mean.
            sample_weight: [rows], or None for 1.

        Raises:
            ValueError: Where the metric is not defined for the prediction, or the
                targets do not fit it.
        """
        step = current_prediction()
        # A tensor of `tfbbb.compat` carries methods of its distribution.
        if not tf.is_tensor(y_pred) and hasattr(y_pred, "aleatoric"):
            prediction = y_pred
            targets = checked_targets(prediction, y_true, self.scored, self.name)
        else:
            prediction = self.of_mean(y_pred) if step is None else step
            check_kind(prediction, self.scored, self.name)
            targets = prediction.aligned(y_true)
        rows = tf.shape(targets)[:1]
        if sample_weight is None:
            weights = tf.ones(rows, tf.float64)
        else:
            weights = tf.reshape(tf.cast(sample_weight, tf.float64), rows)
        self.accumulate(prediction, tf.convert_to_tensor(targets), weights)

    def accumulate(
        self, prediction: Any, targets: tf.Tensor, weights: tf.Tensor
    ) -> None:
        """Adds the rows of a prediction to the state.

        Args:
            prediction: What offers the names of `tfbbb.Predictive`, as arrays or
                tensors.
            targets: float64 [rows, ..., k], or class indices [rows, ...].
            weights: float64 [rows].
        """
        raise NotImplementedError

    def of_mean(self, y_pred: Any) -> Any:
        """Returns the prediction of a plain Keras model, which gives a mean only."""
        raise ValueError(
            f"`{type(self).__name__}` scores a predictive distribution, of which a "
            "plain Keras model gives no more than the mean. Compile a "
            "`tfbbb.BayesianModel` with it, or call `update_state(y, prediction)` with "
            f"a `tfbbb.Predictive`. Received: y_pred of type {type(y_pred).__name__}"
        )
