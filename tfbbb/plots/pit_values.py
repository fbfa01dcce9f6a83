"""The probability integral transform, of a prediction or as it is given."""

from typing import Any

import numpy as np

from tfbbb.plots.arguments import column, is_prediction, vector


def pit_values(prediction: Any, y: Any, target: int) -> np.ndarray:
    """Returns u = P(Y <= y | x) of each row, [n].

    Args:
        prediction: A `tfbbb.Predictive` of n rows; or its values u, [n].
        y: True values; None beside values u.
        target: Index of the target, of a prediction with several.

    Raises:
        ValueError: Where `y` is missing or one too many, or values are not from 0 to 1.
    """
    if is_prediction(prediction):
        from tfbbb import metrics

        if y is None:
            raise ValueError(
                "A prediction needs the true values to be compared with. "
                "Received: y=None"
            )
        return column("prediction", metrics.pit_values(prediction, y), target)
    if y is not None:
        raise ValueError(
            "Values of the probability integral transform have `y` in them already: "
            "leave it out, or pass a `tfbbb.Predictive`. "
            f"Received: prediction of type {type(prediction).__name__}, and `y`"
        )
    values = vector("prediction", prediction)
    if values.min() < 0.0 or values.max() > 1.0:
        raise ValueError(
            "Values of the probability integral transform lie between 0 and 1. "
            f"Received: values from {values.min():g} to {values.max():g}"
        )
    return values
