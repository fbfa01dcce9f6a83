"""Conformal prediction intervals."""

import keras
import numpy as np

from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.recalibration.conformal import Conformal, check_one_place
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import conformal_scores


@keras.saving.register_keras_serializable(package="tfbbb.recalibration")
class ConformalIntervals(Conformal):
    """Computes intervals with guaranteed coverage.

    The score of a held-out row is the least s whose interval between two quantiles of
    the model holds its target (Chernozhukov, Wuethrich and Zhu 2021): of a density

        s_i = |Phi^-1(F_i(y_i))|

    in standard deviations of a normal distribution, with the distribution function
    F_i = P(Y_i <= y); of integers `max(Phi^-1(P(Y_i < y_i)), -Phi^-1(F_i(y_i)), 0)`.
    The interval of a level lies between the quantiles

        F^-1(Phi(-s_(j))) and F^-1(Phi(s_(j))),  j = ceil((n + 1) * level)

    with the j-th smallest score, so no bound is a number that the model cannot give. Of
    a normal prediction it is `mean -/+ s_(j) * stddev`. Beyond s = 4.75 the interval
    there becomes longer about its centre, in proportion to s and within the support;
    for j > n there is no finite interval. If the held-out
    rows and a new row are exchangeable, the interval contains the target with at least
    the probability `level`, and at most `level + 1 / (n + 1)` if no scores are equal,
    as those of integers may be, for any model and any distribution of the data. This
    probability is an average over all rows, not for each x, and holds for each target
    separately.

    Only `interval` changes, unless there is a `density`; quantiles, the density and
    variances remain those of the model.

    Rows that a part of an ensemble was trained on can serve as held-out rows if each is
    predicted by members that never saw it (cross-conformal prediction, Vovk 2015).
    Intervals about the prediction of all members then cover the level approximately,
    because all members together predict a new row better than some of them.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> model.recalibration = tfbbb.recalibration.ConformalIntervals(
    ...     [[0.3, 0.1, 2.0, 1.5]]
    ... )
    >>> prediction = model.predictive([[1.0, 2.0]])
    >>> lower, upper = prediction.interval(0.6)
    >>> (upper - prediction.mean) / prediction.stddev
    array([[1.5]])

    Args:
        scores: The scores of each target, [k, n], zero or positive.
        density: The recalibration of the density, such as `VarianceScaling`; None to
            leave the density.
        by: The input that tells groups apart: the name of a column, or the index of a
            column of an input matrix; None without groups.
        groups: The value of this input in each group with scores of its own; None
            stands for a missing number.
        group_scores: The scores of each group, [k, n] each.

    Raises:
        ValueError: A score is negative or not finite, the targets have different
            numbers of scores, or a group has no scores.
    """

    central_intervals = False
    scores_are_distances = True

    def check(self, likelihood: Likelihood) -> None:
        if likelihood.task != "regression":
            raise ValueError(
                "Classes have no intervals; use `'temperature'` or "
                "`'conformal_sets'`. "
                f"Received: likelihood={type(likelihood).__name__}"
            )
        if not likelihood.ordered:
            raise ValueError(
                "Conformal intervals lie between quantiles, so the likelihood must "
                "have `cdf` and `quantile`, and the attribute `ordered=True`. "
                f"Received: likelihood={type(likelihood).__name__}"
            )
        num_targets = getattr(likelihood, "num_targets", 1)
        if self.num_rows and len(self.scores) != num_targets:
            raise ValueError(
                f"The model has {num_targets} targets, and each needs its own scores. "
                f"Received: {self!r}"
            )
        super().check(likelihood)

    def score(self, prediction: Predictive, targets: np.ndarray) -> np.ndarray:
        check_one_place(targets, 2)
        return conformal_scores(prediction, targets)
