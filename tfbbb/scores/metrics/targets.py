"""Validation of the targets that score a prediction."""

from typing import Any, Literal

import numpy as np

from tfbbb.base.types import ArrayLike
from tfbbb.bayes.target_shape import target_width
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes

# The predictions for which a score is defined: of numbers, of classes, with quantiles
# (numbers, counts and grades), or any.
Scored = Literal["numbers", "classes", "ordered", "any"]


def check_kind(prediction: Any, scored: Scored, score: str) -> None:
    """Checks that a score is defined for a prediction."""
    of_classes = is_of_classes(prediction)
    if scored == "numbers" and of_classes:
        raise ValueError(
            f"`{score}` scores predictions of numbers; use `brier_score`, "
            "`negative_log_likelihood` or `expected_calibration_error` for classes. "
            f"Received: {prediction!r}"
        )
    if scored == "classes" and not of_classes:
        raise ValueError(
            f"`{score}` scores predictions of classes; use `crps`, "
            "`negative_log_likelihood` or `calibration_error` for numbers. "
            f"Received: {prediction!r}"
        )


def checked_targets(
    prediction: Predictive,
    y: ArrayLike,
    scored: Scored,
    score: str,
    by_place: bool = False,
) -> np.ndarray:
    """Returns valid targets: float64 [rows, ..., k], or class indices [rows, ...].

    A score `by_place` averages over places and leaves masked ones out.
    """
    check_kind(prediction, scored, score)
    shape = np.shape(prediction.mean)
    values = np.asarray(y)
    if values.ndim == 0 or len(values) == 0:
        raise ValueError(
            f"`{score}` needs one target per row, and at least one row. "
            f"Received: y of shape {values.shape}"
        )
    if len(values) != shape[0]:
        raise ValueError(
            f"There must be one target for each of the {shape[0]} predicted rows. "
            f"Received: {len(values)} targets"
        )
    mask = getattr(prediction, "mask", None)
    if mask is not None:
        if not (by_place or mask.all()):
            raise ValueError(
                f"`{score}` counts all places and knows no mask. Score rows without "
                f"masked places. Received: {np.sum(~mask)} masked places"
            )
        values = _without_masked(values, mask, prediction)
    if is_of_classes(prediction):
        return _classes(values, shape)
    return _numbers(values, shape)


def _without_masked(
    values: np.ndarray, mask: np.ndarray, prediction: Predictive
) -> np.ndarray:
    """Returns targets with the prediction, or class 0, in place of masked ones."""
    shape = np.shape(prediction.mean)
    of_classes = is_of_classes(prediction)
    widths = (1, shape[-1]) if of_classes else shape[-1:]
    width = target_width(values.shape, shape[1:-1], widths)
    counted = mask if width is None else mask[..., np.newaxis]
    if not of_classes:
        mean = prediction.mean
        return np.where(counted, values, mean[..., 0] if width is None else mean)
    possible = np.eye(width or 1)[0] if width not in (None, 1) else 0
    return np.where(counted, values, possible)


def _numbers(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if target_width(values.shape, shape[1:-1], shape[-1:]) is None:
        values = values[..., np.newaxis]
    numbers = values.astype(np.float64)
    finite = np.isfinite(numbers).reshape(len(numbers), -1).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(
            "The targets must be finite; drop the rows of other targets. "
            f"Received: {numbers[row].tolist()} in row {row}"
        )
    return numbers


def _classes(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    *places, num_classes = shape
    values_of_rows = values.reshape(len(values), -1)
    if target_width(values.shape, places[1:], (1, num_classes)) == num_classes:
        one_hot = np.isin(values, (0, 1)).all(-1) & (values.sum(-1) == 1)
        valid = one_hot.reshape(len(values), -1).all(axis=1)
        indices = values.argmax(axis=-1)
    else:
        valid = np.isin(values_of_rows, np.arange(num_classes)).all(axis=1)
        indices = values.reshape(places)
    if not valid.all():
        row = int(np.argmin(valid))
        raise ValueError(
            f"The targets must be class indices 0 to {num_classes - 1}, or one-hot "
            f"rows. Received: {values_of_rows[row].tolist()} in row {row}"
        )
    return indices.astype(np.int32)
