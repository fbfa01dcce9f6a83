"""The probability integral transform for plots."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.scores.plots.arguments import (
    column,
    is_prediction,
    vector,
)

if TYPE_CHECKING:
    from tfbbb.prediction import Predictive


def pit_values(
    prediction: "Predictive | npt.ArrayLike", y: npt.ArrayLike | None, target: int
) -> np.ndarray:
    """Returns u = P(Y <= y | x) of each row, [n].

    Args:
        prediction: A `tfbbb.Predictive` of n rows; or its values u, [n].
        y: True values; None with values u.
        target: Index of the target.

    Raises:
        ValueError: `y` is missing, or given together with values u, or values u are not
            from 0 to 1.
    """
    if is_prediction(prediction):
        from tfbbb.scores import metrics

        if y is None:
            raise ValueError(
                "Pass the true values `y` together with a `tfbbb.Predictive`. "
                "Received: y=None"
            )
        return column("prediction", metrics.pit_values(prediction, y), target)
    if y is not None:
        raise ValueError(
            "Values of the probability integral transform already contain `y`: omit "
            "`y`, or pass a `tfbbb.Predictive`. "
            f"Received: prediction of type {type(prediction).__name__}, and `y`"
        )
    values = vector("prediction", prediction)
    if values.min() < 0.0 or values.max() > 1.0:
        raise ValueError(
            "Values of the probability integral transform must be from 0 to 1. "
            f"Received: values from {values.min():g} to {values.max():g}"
        )
    return values
