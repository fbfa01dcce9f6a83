"""The uncertainty of a row, as one number."""

from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes

_OF_CLASSES = ("entropy", "mutual_information")
_OF_BOTH = ("epistemic", "aleatoric", "variance")


def check_uncertainty(by: str | None) -> str | None:
    """Returns `by`, the name of an uncertainty or None."""
    if by is None or by in (*_OF_CLASSES, *_OF_BOTH):
        return by
    names = ", ".join(f"'{name}'" for name in (*_OF_CLASSES, *_OF_BOTH))
    raise ValueError(f"`by` must be one of {names}. Received: by={by!r}")


def named_uncertainty(prediction: Predictive, by: str | None, of_numbers: str) -> str:
    """Returns `by`, or if it is None "entropy" for classes and `of_numbers` else."""
    return by or ("entropy" if is_of_classes(prediction) else of_numbers)


def uncertainty(prediction: Predictive, by: str) -> tf.Tensor:
    """Returns an uncertainty of each row of a prediction, [rows], float64.

    Variances are summed over targets or classes, which gives the trace of the
    covariance. Variances and entropies are summed over places.
    """
    if by in _OF_CLASSES and not is_of_classes(prediction):
        raise ValueError(
            f"A prediction of numbers has no `{by}`; rank it by 'epistemic', "
            f"'aleatoric' or 'variance'. Received: by={by!r}"
        )
    # A prediction may have a number of draws for each row.
    num_samples: Any = getattr(prediction, "num_samples", None)
    alone = np.all(np.equal(num_samples, 1))
    if by in ("mutual_information", "epistemic") and alone:
        raise ValueError(
            "Epistemic uncertainty needs at least two draws, and a model of one "
            "posterior has one draw per step. Give the model several `members`, or "
            "call `update_state(y, prediction)` with a `tfbbb.Predictive`. "
            f"Received: by={by!r}"
        )
    values = tf.cast(getattr(prediction, by), tf.float64)
    return tf.reduce_sum(values, axis=list(range(1, len(values.shape))))
