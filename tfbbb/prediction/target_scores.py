"""Scores of predictions by their targets, which are arrays or tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import tf
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.prediction.conformal_reach import FARTHEST, half_of, rounded_up
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.survival_scores import held_in_intervals

# Percentiles, and beyond them a level at every quarter of a standard deviation to 4.5.
_TAIL = [0.5 * math.erfc(t / math.sqrt(2.0)) for t in np.arange(4.5, 2.4, -0.25)]
_LEVELS = [*_TAIL, *np.arange(1, 100) / 100, *(1.0 - p for p in reversed(_TAIL))]
_RARE = 1e-6
# The size of a negative number that no calculation takes for 0.
_TINY = 1e-30
_MAX_TERMS = 256


def is_of_classes(prediction: object) -> bool:
    """Returns whether a prediction is of classes rather than numbers."""
    return hasattr(prediction, "probabilities")


def is_discrete(prediction: object) -> bool:
    """Returns whether the targets are whole numbers, whose F is a step function."""
    return bool(getattr(prediction, "discrete", False))


def has_steps(prediction: object) -> bool:
    """Returns whether F has steps, of all targets or of some."""
    return is_discrete(prediction) or len(getattr(prediction, "masses", ())) > 0


def cdf_step(prediction: Predictive, targets: ArrayLike) -> tuple[Tensor, Tensor]:
    """Returns `P(Y < y)` and `P(Y <= y)`, [rows, ..., k] each."""
    values = ordered_values(prediction, targets)
    found = prediction.cdf(values)
    up_to = ops.cast(found, "float64")
    if not is_discrete(prediction):
        return _below_masses(prediction, values, up_to), up_to
    # Counts and indices of classes start at 0.
    previous = values - ops.cast(values >= 1.0, "float64")
    below = ops.cast(prediction.cdf(previous), "float64")
    return ops.where(values >= 1.0, below, 0.0), up_to


def _below_masses(prediction: Predictive, values: ArrayLike, up_to: Tensor) -> Tensor:
    """Returns `P(Y < y)` of numbers, of which some have a probability of their own."""
    masses = getattr(prediction, "masses", ())
    if len(masses) == 0:
        return up_to
    values = ops.cast(values, "float64")
    # No other number has a probability between these two.
    previous = values
    for value in masses:
        below = float(np.nextafter(value, -np.inf)) if value else -_TINY
        previous = ops.where(values == value, below, previous)
    return ops.where(
        previous < values, ops.cast(prediction.cdf(previous), "float64"), up_to
    )


def in_intervals(
    prediction: Predictive, targets: ArrayLike, levels: Sequence[float]
) -> Tensor:
    """Returns whether intervals hold the targets, [rows, Q, ..., k].

    A target lies between two quantiles if F(y) lies between their levels, and in a
    conformal interval if its score is small enough, so there is no search for
    quantiles.
    """
    if not getattr(prediction, "central_intervals", True):
        scores = conformal_scores(prediction, np.asarray(targets))[:, np.newaxis]
        return scores <= rounded_up(prediction.reach(levels), prediction.discrete)
    below, up_to = cdf_step(prediction, targets)
    if getattr(prediction, "censored", False):
        times, happened = np.asarray(up_to), np.asarray(targets)[:, 1:] == 1.0
        of_levels = [held_in_intervals(times, happened, level) for level in levels]
        return np.stack(of_levels, axis=1)
    held = [
        (up_to >= 0.5 - level / 2.0) & (below <= 0.5 + level / 2.0) for level in levels
    ]
    return ops.stack(held, axis=1)


def in_boxes(
    prediction: Predictive, targets: np.ndarray, levels: Sequence[float]
) -> np.ndarray:
    """Returns whether joint intervals hold all targets of a row, [rows, Q, ...]."""
    scores = conformal_scores(prediction, targets).max(axis=-1)[:, np.newaxis]
    reach = prediction.reach(levels, joint=True)[..., 0]
    return scores <= rounded_up(reach, prediction.discrete)


def conformal_scores(prediction: Predictive, targets: np.ndarray) -> np.ndarray:
    """Returns the least scores of conformal intervals that hold the targets, [rows, k].

    They are `max(Phi^-1(P(Y < y)), -Phi^-1(P(Y <= y)), 0)` up to `FARTHEST`, and beyond
    it as `tfbbb.prediction.conformal_reach.bounds_of_scores` has it.
    """
    below, up_to = map(np.asarray, cdf_step(prediction, targets))
    outermost = float(_phi(-FARTHEST))
    tails = np.minimum(np.minimum(up_to, 1.0 - below), 0.5)
    scores = -ops.ndtri(np.maximum(tails, outermost))
    (rows,) = np.nonzero((tails <= outermost).any(axis=1))
    if len(rows):
        ends = prediction.take(rows).quantile([outermost, 1.0 - outermost])
        lower, upper = np.moveaxis(ends, 1, 0)
        half = half_of(lower, upper, prediction.discrete)
        distance = np.abs(targets[rows] - 0.5 * (lower + upper))
        factor = distance / np.maximum(half, np.finfo(np.float64).tiny)
        beyond = FARTHEST * np.maximum(factor, 1.0)
        scores[rows] = np.where(tails[rows] <= outermost, beyond, scores[rows])
    return scores


def ordered_values(prediction: Predictive, targets: ArrayLike) -> ArrayLike:
    """Returns targets as arguments of `cdf`, [rows, ..., k]."""
    return targets[..., :1] if getattr(prediction, "censored", False) else targets


def brier_of_targets(prediction: Predictive, targets: ArrayLike) -> Tensor:
    """Returns the Brier score of each target; see `tfbbb.metrics.brier_score`."""
    probabilities = ops.cast(prediction.probabilities, "float64")
    num_classes = probabilities.shape[-1]
    classes = np.arange(float(num_classes))
    is_target = ops.cast(targets, "float64")[..., np.newaxis] == classes
    distances = probabilities - ops.cast(is_target, "float64")
    score = ops.reduce_sum(distances**2, axis=-1)
    # The two probabilities of a row have the same error.
    return 0.5 * score if num_classes == 2 else score


def binned_confidences(
    prediction: Predictive, targets: ArrayLike, bins: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns bin, confidence and whether the class is right, [rows, ...] each."""
    probabilities = ops.cast(prediction.probabilities, "float64")
    confidence = ops.reduce_max(probabilities, axis=-1)
    index = ops.cast(ops.ceil(confidence * bins), "int32") - 1
    predicted = ops.cast(ops.argmax(probabilities, axis=-1), "int32")
    right = ops.cast(predicted == ops.cast(targets, "int32"), "float64")
    return ops.clip_by_value(index, 0, bins - 1), confidence, right


@dataclass(frozen=True)
class ReliabilityDiagram:
    """Accuracy against confidence, the probability of the predicted class.

    Attributes:
        edges: Edges of the bins of the confidence, [bins + 1], from 0 to 1. A bin
            includes its upper edge.
        counts: Number of rows in each bin, [bins].
        confidence: Mean confidence of the rows of each bin, [bins]; NaN for an empty
            bin.
        accuracy: Share of right predictions in each bin, [bins]; NaN for an empty bin.
    """

    edges: np.ndarray
    counts: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray

    @classmethod
    def of(
        cls, prediction: Predictive, targets: np.ndarray, bins: int
    ) -> ReliabilityDiagram:
        """Computes the diagram; see `tfbbb.metrics.reliability_diagram`."""
        found = binned_confidences(prediction, targets, bins)
        index, confidence, right = map(np.ravel, found)
        counts = np.bincount(index, minlength=bins)
        confidences = np.bincount(index, confidence, minlength=bins)
        rights = np.bincount(index, right, minlength=bins)
        edges = np.linspace(0.0, 1.0, bins + 1)
        with np.errstate(invalid="ignore"):
            return cls(edges, counts, confidences / counts, rights / counts)


def calibration_error_of_targets(
    prediction: Predictive, targets: np.ndarray, weights: np.ndarray, bins: int = 15
) -> float:
    """Returns the expected calibration error of weighted rows."""
    found = binned_confidences(prediction, targets, bins)
    index, confidence, right = map(np.ravel, found)
    weights = np.repeat(weights, len(index) // len(weights))
    gaps = np.bincount(index, weights * (right - confidence))
    return float(np.abs(gaps).sum() / weights.sum())


def crps_of_targets(prediction: Predictive, targets: ArrayLike) -> Tensor:
    """Returns the CRPS of each target, [rows, ..., k]; see `tfbbb.metrics.crps`."""
    values = ordered_values(prediction, targets)
    if is_discrete(prediction):
        return _score_integers(prediction, values)
    return _score_numbers(prediction, values)


def _score_numbers(prediction: Predictive, values: ArrayLike) -> Tensor:
    found = prediction.cdf(values)
    below = ops.cast(found, "float64")
    # The levels on the last axis: [rows, ..., k, Q].
    nodes = ops.moveaxis(ops.cast(prediction.quantile(_LEVELS), "float64"), 1, -1)
    values = ops.cast(values, "float64")
    target = values[..., np.newaxis]
    scores = ops.ndtri(ops.cast(_LEVELS, "float64"))
    split = ops.clip_by_value(ops.ndtri(below)[..., np.newaxis], scores[0], scores[-1])
    left = _integral(ops.minimum(nodes, target), ops.minimum(scores, split))
    # The integral of (1 - F)^2 above the target: mirroring both axes turns F to 1 - F.
    right = _integral(-ops.maximum(nodes, target), -ops.maximum(scores, split))
    # F is 0 or 1 between the outermost quantiles and a target beyond them.
    outside = ops.maximum(nodes[..., 0] - values, 0.0) + ops.maximum(
        values - nodes[..., -1], 0.0
    )
    return left + right + outside


def _integral(nodes: Tensor, scores: Tensor) -> Tensor:
    """Returns the size of `integral F(z)^2 dz` over the nodes z, [..., Q].

    The nodes are quantiles, in order, and the scores are `Phi^-1(F)` at the nodes.
    """
    width = ops.abs(nodes[..., 1:] - nodes[..., :-1])
    first, last = scores[..., :-1], scores[..., 1:]
    middle = _phi(0.5 * (first + last)) ** 2
    # The difference of two almost equal integrals would lose its digits.
    apart = ops.abs(last - first) > 1e-4
    mean = (_antiderivative(last) - _antiderivative(first)) / ops.where(
        apart, last - first, 1.0
    )
    return ops.reduce_sum(width * ops.where(apart, mean, middle), axis=-1)


def _antiderivative(t: Tensor) -> Tensor:
    """Returns `integral Phi(s)^2 ds` from minus infinity to t."""
    density = ops.exp(-0.5 * t**2) / math.sqrt(2.0 * math.pi)
    return (
        t * _phi(t) ** 2
        + 2.0 * density * _phi(t)
        - _phi(math.sqrt(2.0) * t) / math.sqrt(math.pi)
    )


def _phi(t: Tensor) -> Tensor:
    return 0.5 * ops.erfc(-t / math.sqrt(2.0))


def _score_integers(prediction: Predictive, values: ArrayLike) -> Tensor:
    bounds = ops.cast(prediction.quantile([_RARE, 1.0 - _RARE]), "float64")
    first, end = bounds[:, 0], bounds[:, 1]
    target = ops.cast(values, "float64")
    step = ops.maximum(ops.ceil((end - first) / _MAX_TERMS), 1.0)
    num_terms = ops.reduce_max(ops.ceil((end - first) / step))

    def add(index: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        start = ops.minimum(first + index * step, end)
        size = ops.minimum(step, end - start)
        middle = ops.floor(start + ops.maximum(size - 1.0, 0.0) / 2.0)
        below = ops.cast(prediction.cdf(middle), "float64")
        # The number of integers of the block that are at least the target.
        above = ops.clip_by_value(start + size - target, 0.0, size)
        block = (size - above) * below**2 + above * (1.0 - below) ** 2
        return index + 1.0, total + block

    # Beyond these bounds F is 0 or 1 up to `_RARE`.
    total = ops.maximum(first - target, 0.0) + ops.maximum(target - end, 0.0)
    if not ops.is_tensor(total):
        for index in range(int(num_terms)):
            _, total = add(index, total)
        return total

    def body(index: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        following, more = add(index, total)
        return following, tf.ensure_shape(more, total.shape)

    start = (tf.constant(0.0, tf.float64), total)
    _, total = tf.while_loop(lambda index, _: index < num_terms, body, start)
    return total
