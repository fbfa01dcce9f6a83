"""Split conformal prediction intervals."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.prediction.result import Predictive
from tfbbb.recalibration.recalibration import Recalibration
from tfbbb.types import ArrayLike


@keras.saving.register_keras_serializable(package="tfbbb.recalibration")
class ConformalIntervals(Recalibration):
    """Computes intervals with guaranteed coverage.

    The scores of n held-out rows are `s_i = |y_i - mean_i| / stddev_i` (Vovk et al.
    2005; Lei et al. 2018). The interval of a level is

        mean -/+ s_(j) * stddev,  j = ceil((n + 1) * level)

    with the j-th smallest score; for j > n there is no finite interval. If the held-out
    rows and a new row are exchangeable, the interval contains the target with at least
    the probability `level`, and at most `level + 1 / (n + 1)` if no scores are equal,
    for any model and any distribution of the data. This probability is an average over
    all rows, not for each x, and holds for each target separately.

    Only `interval` changes; quantiles, the density and variances remain those of the
    model.

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

    Raises:
        ValueError: A score is negative or not finite, or the targets have different
            numbers of scores.
    """

    central_intervals = False

    def __init__(self, scores: Sequence[Sequence[float]] = ((),)):
        values = [np.sort(np.asarray(x, dtype=np.float64)) for x in scores]
        valid = all(
            x.ndim == 1 and len(x) == len(values[0]) and np.all((x >= 0) & (x < np.inf))
            for x in values
        )
        if not values or not valid:
            raise ValueError(
                "`scores` must be lists of finite numbers of at least 0, with the same "
                f"length for each target. Received: scores={scores}"
            )
        self.scores = tuple(tuple(x.tolist()) for x in values)

    def get_config(self) -> dict[str, Any]:
        return {"scores": [list(x) for x in self.scores]}

    @property
    def num_rows(self) -> int:
        """Number n of held-out rows."""
        return len(self.scores[0])

    def __repr__(self) -> str:
        return f"ConformalIntervals(targets={len(self.scores)}, rows={self.num_rows})"

    def check(self, likelihood: Likelihood) -> None:
        if likelihood.task != "regression":
            raise ValueError(
                "Classes have no intervals; use `'temperature'`. "
                f"Received: likelihood={type(likelihood).__name__}"
            )
        num_targets = getattr(likelihood, "num_targets", 1)
        if self.num_rows and len(self.scores) != num_targets:
            raise ValueError(
                f"The model has {num_targets} targets, and each needs its own scores. "
                f"Received: {self!r}"
            )

    def fitted(
        self, likelihood: Likelihood, prediction: Predictive, targets: np.ndarray
    ) -> "ConformalIntervals":
        if targets.ndim != 2:
            raise ValueError(
                "Places of one row depend on each other, so their coverage cannot be "
                "guaranteed; conformal intervals need targets of shape [rows, k]. "
                f"Received: y of shape {targets.shape}"
            )
        scores = np.abs(targets - prediction.mean) / prediction.stddev
        return ConformalIntervals(scores.T.tolist())

    def reach(self, level: ArrayLike) -> tf.Tensor:
        return conformal_reach(self.scores, level)
