"""The continuous ranked probability score."""

from typing import Literal, overload

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import crps_of_targets
from tfbbb.scores.metrics.mean_score import MeanScore, average
from tfbbb.scores.metrics.targets import checked_targets


@overload
def crps(
    prediction: Predictive, y: ArrayLike, *, per_row: Literal[False] = False
) -> float: ...


@overload
def crps(
    prediction: Predictive, y: ArrayLike, *, per_row: Literal[True]
) -> np.ndarray: ...


def crps(
    prediction: Predictive, y: ArrayLike, *, per_row: bool = False
) -> float | np.ndarray:
    """Computes `integral (F(z) - 1{z >= y})^2 dz`, in units of y.

    F is the predictive distribution function of a target (Matheson and Winkler 1976;
    Gneiting and Raftery 2007). The score is proper; lower is better. For a prediction
    without spread it is the absolute error.

    Between quantiles at 117 levels, and one more node at the target, `Phi^-1(F)` is
    taken as linear, which gives the integral a closed form. The error is at most 2e-6
    standard deviations for a Normal. For a mixture of normals of similar widths it is
    at most 5e-4 and mostly 3e-5 of the mixture's standard deviation, and for components
    far apart 0.5 % of the gap. For counts the score is the sum over integers
    `sum_z (F(z) - 1{z >= y})^2`; more than 256 integers are summed in blocks of one F
    each. For ordered classes this is the ranked probability score (Epstein 1969).

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0, 2.0]])
    >>> near = tfbbb.metrics.crps(prediction, prediction.mean)
    >>> near < tfbbb.metrics.crps(prediction, prediction.mean + 1.0)
    True

    Args:
        prediction: A `tfbbb.Predictive` of numbers, counts or ordered classes.
        y: Targets in raw units, [rows, k] (or [rows] for one target).
        per_row: Whether to return the score of each target, [rows, k], instead of the
            mean.

    Raises:
        ValueError: The prediction is of classes without an order, or the targets do not
            fit the prediction.
    """
    targets = checked_targets(prediction, y, "ordered", "crps", by_place=True)
    return average(crps_of_targets(prediction, targets), per_row, prediction)


@keras.saving.register_keras_serializable(package="tfbbb.metrics")
class CRPS(MeanScore):
    """`crps` as a Keras metric.

    With several draws per step, the metric inverts a distribution function in every
    step, which takes longer than a training step of a small network.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> model.compile(metrics=[tfbbb.metrics.CRPS()])
    """

    scored = "ordered"

    default_name = "crps"

    def score(self, prediction: Predictive, targets: tf.Tensor) -> tf.Tensor:
        return crps_of_targets(prediction, targets)
