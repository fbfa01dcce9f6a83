"""Conformal prediction sets of classes."""

import keras
import numpy as np

from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.answers import more_probable
from tfbbb.prediction.recalibration.conformal import Conformal, check_one_place
from tfbbb.prediction.result import Predictive


@keras.saving.register_keras_serializable(package="tfbbb.recalibration")
class ConformalSets(Conformal):
    """Computes adaptive prediction sets (Romano, Sesia and Candes 2020).

    The score of a held-out row is the probability of all classes that are more probable
    than its class. The set of a level has the most probable classes until their
    probabilities exceed the j-th smallest score:

        {c: sum of p(c') over all more probable c' <= s_(j)},  j = ceil((n + 1) * level)

    Sets are small where the model is certain, and large where it is not. If the
    held-out rows and a new row are exchangeable, the set contains the class with at
    least the probability `level`, on average over all rows.

    The score is not randomised, so the same row always has the same set, and each set
    has at least one class. Therefore the coverage exceeds the level where many scores
    are equal, above all 0: a model whose most probable class is right more often than
    `level` has sets of one class. Otherwise the coverage is at most
    `level + 1 / (n + 1)`. For j > n the set has all classes.

    Only prediction sets change, unless there is a `density`.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> model.recalibration = tfbbb.recalibration.ConformalSets([[0.0, 0.3, 1.0]])
    >>> model.predictive([[1.0, 2.0]]).prediction_set(0.75)
    array([[ True,  True,  True]])

    Args:
        scores: The scores of the held-out rows, [1, n], from 0 to 1.
        density: The recalibration of the probabilities: `Temperature`, or None.
        by: As for `ConformalIntervals`.
        groups: As for `ConformalIntervals`.
        group_scores: As for `ConformalIntervals`.

    Raises:
        ValueError: A score is negative or not finite, or a group has no scores.
    """

    def check(self, likelihood: Likelihood) -> None:
        if likelihood.task != "classification":
            raise ValueError(
                "Prediction sets consist of classes; use `'conformal_intervals'` for "
                f"numbers. Received: likelihood={type(likelihood).__name__}"
            )
        if self.num_rows and len(self.scores) != 1:
            raise ValueError(
                "A row has one class, and thus one score. "
                f"Received: scores of {len(self.scores)} targets"
            )
        super().check(likelihood)

    def score(self, prediction: Predictive, targets: np.ndarray) -> np.ndarray:
        check_one_place(targets, 1)
        before = more_probable(prediction.probabilities)
        return np.take_along_axis(before, targets[:, np.newaxis], axis=1)
