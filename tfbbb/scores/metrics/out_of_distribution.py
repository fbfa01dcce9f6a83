"""How well uncertainty separates rows of another distribution."""

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.call_context import current_call
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes
from tfbbb.scores.metrics.ranked_by_uncertainty import RankedByUncertainty
from tfbbb.scores.metrics.uncertainty import (
    check_uncertainty,
    named_uncertainty,
    uncertainty,
)

_OF_NUMBERS = "epistemic"


def out_of_distribution_auroc(
    inside: Predictive, outside: Predictive, *, by: str | None = None
) -> float:
    """Computes the area under the receiver operating characteristic.

    It is the probability that a row from outside is more uncertain than a row from
    inside; ties count half (Hendrycks and Gimpel 2017). It is 1 for perfect separation
    and 0.5 for uninformative uncertainty.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> near, far = model.predictive([[0.1, 0.1]]), model.predictive([[9.0, 9.0]])
    >>> tfbbb.metrics.out_of_distribution_auroc(near, far)
    1.0

    Args:
        inside: A `tfbbb.Predictive` of rows like those of training.
        outside: A `tfbbb.Predictive` of other rows by the same model.
        by: `"entropy"`, `"mutual_information"`, `"epistemic"`, `"aleatoric"` or
            `"variance"`. Defaults to the entropy for classes and to the epistemic
            variance for numbers.

    Raises:
        ValueError: `by` is unknown or not defined for the predictions, or one
            prediction is of classes and the other of numbers.
    """
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(*_marks_and_scores(inside, outside, by)))


def out_of_distribution_aupr(
    inside: Predictive, outside: Predictive, *, by: str | None = None
) -> float:
    """Computes the average precision, the area under precision against recall.

    `sum_n (R_n - R_{n-1}) P_n` over thresholds of the uncertainty, where the rows from
    outside are the positives. For uninformative uncertainty it is the share of these
    rows.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> near, far = model.predictive([[0.1, 0.1]]), model.predictive([[9.0, 9.0]])
    >>> tfbbb.metrics.out_of_distribution_aupr(near, far, by="variance")
    1.0

    Args:
        inside: A `tfbbb.Predictive` of rows like those of training.
        outside: A `tfbbb.Predictive` of other rows by the same model.
        by: As for `out_of_distribution_auroc`.

    Raises:
        ValueError: As for `out_of_distribution_auroc`.
    """
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(*_marks_and_scores(inside, outside, by)))


class OutOfDistributionMetric(RankedByUncertainty):
    """The base of both metrics: a target of 1 marks a row from outside."""

    of_numbers = _OF_NUMBERS

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


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
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

    Args:
        by: As for `out_of_distribution_auroc`.
        name: Name of the metric.
        dtype: Type of its state.
    """

    default_name = "out_of_distribution_auroc"

    def result(self) -> tf.Tensor:
        outside, inside = self._outside_and_inside()
        less_certain = tf.cumsum(outside, exclusive=True) + outside / 2.0
        pairs = tf.reduce_sum(outside) * tf.reduce_sum(inside)
        return tf.math.divide_no_nan(tf.reduce_sum(inside * less_certain), pairs)


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class OutOfDistributionAUPR(OutOfDistributionMetric):
    """`out_of_distribution_aupr` as a Keras metric.

    The targets are marks: see `OutOfDistributionAUROC`.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> metric = tfbbb.metrics.OutOfDistributionAUPR(by="epistemic")
    >>> metric.update_state([0, 1], model.predictive([[0.1, 0.1], [9.0, 9.0]]))
    >>> float(metric.result())
    1.0

    Args:
        by: As for `out_of_distribution_auroc`.
        name: Name of the metric.
        dtype: Type of its state.
    """

    default_name = "out_of_distribution_aupr"

    def result(self) -> tf.Tensor:
        outside, inside = self._outside_and_inside()
        found, taken = tf.cumsum(outside), tf.cumsum(outside + inside)
        precision = tf.math.divide_no_nan(found, taken)
        return tf.math.divide_no_nan(
            tf.reduce_sum(outside * precision), tf.reduce_sum(outside)
        )


def _marks_and_scores(
    inside: Predictive, outside: Predictive, by: str | None
) -> tuple[np.ndarray, np.ndarray]:
    check_uncertainty(by)
    if is_of_classes(inside) != is_of_classes(outside):
        raise ValueError(
            "Both predictions must come from the same model. "
            f"Received: inside={inside!r}, outside={outside!r}"
        )
    by = named_uncertainty(inside, by, _OF_NUMBERS)
    scores = [np.asarray(uncertainty(part, by)) for part in (inside, outside)]
    marks = np.repeat([0, 1], [len(part) for part in scores])
    return marks, np.concatenate(scores)


def _validate_marks(y: ArrayLike, rows: int) -> np.ndarray:
    marks = np.asarray(y)
    if marks.shape not in ((rows,), (rows, 1)) or not np.isin(marks, (0, 1)).all():
        raise ValueError(
            f"The targets must be {rows} marks: 1 for each row from outside, else 0. "
            f"Received: {y!r}"
        )
    return marks.reshape(rows)
