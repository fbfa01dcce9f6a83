"""Running figures of a version, as the database keeps them."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from service.shared.database.tables import Feedback
from service.shared.model_messages import ScoredRows
from tfbbb.judging.drift import FALSE_ALARM_RATE, DriftTest
from tfbbb.judging.drift_reference import DriftReference, drift_scores

BINS = 10
# Scores that are no figures: the calibration table is made of them.
_NO_FIGURES = ("pit_below", "pit_up_to", "confidence")


@dataclass(frozen=True)
class RunningMean:
    """A mean to which values are added.

    Args:
        count: Number of values.
        mean: Their mean.
        squares: Sum of their squared differences from the mean.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, values: np.ndarray) -> "RunningMean":
        """Returns the mean with more values (Chan, Golub and LeVeque 1983)."""
        count = self.count + len(values)
        mean, squares = float(np.mean(values)), float(np.var(values)) * len(values)
        distance = mean - self.mean
        return RunningMean(
            count,
            self.mean + distance * len(values) / count,
            self.squares + squares + distance**2 * self.count * len(values) / count,
        )


def start(row: Feedback, reference: DriftReference | None, scored: ScoredRows) -> None:
    """Sets the figures of a version before its first feedback."""
    row.num_rows, row.figures = 0, {}
    row.calibration = np.zeros((BINS, 1 if _is_of_numbers(scored) else 3)).tolist()
    width = 2 if _is_of_numbers(scored) else 1
    scores = np.zeros((0, width)) if reference is None else reference.scores
    row.drift = {"reference_rows": len(scores), "alarm_at": None}
    row.drift_test = DriftTest.start(scores).to_dict()


def add(row: Feedback, scored: ScoredRows, now: float) -> None:
    """Adds rows to the figures of a version."""
    scores = {name: np.asarray(values) for name, values in scored.scores.items()}
    row.num_rows += scored.num_rows
    row.figures = {
        name: asdict(RunningMean(**row.figures.get(name, {})).add(values))
        for name, values in scores.items()
        if name not in _NO_FIGURES
    }
    row.calibration = (np.asarray(row.calibration) + _count(scores)).tolist()
    pit = None
    if _is_of_numbers(scored):
        pit = (scores["pit_below"] + scores["pit_up_to"]) / 2
    test = DriftTest.from_dict(row.drift_test)
    test = test.update(drift_scores(scores["log_likelihood"], pit))
    was_quiet = row.drift["alarm_at"] is None
    raised = test.alarm_row is not None
    row.drift_test = test.to_dict()
    row.drift = {
        "reference_rows": row.drift["reference_rows"],
        "log_martingale": test.log_value,
        "log_greatest": test.log_greatest,
        "log_threshold": -math.log(FALSE_ALARM_RATE),
        "alarm_row": test.alarm_row,
        "alarm_at": now if raised and was_quiet else row.drift["alarm_at"],
        "false_alarm_rate": FALSE_ALARM_RATE,
    }


def _is_of_numbers(scored: ScoredRows) -> bool:
    return "confidence" not in scored.scores


def _count(scores: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns what rows add to the calibration table.

    Of numbers, it is the number of targets in each bin of the probability integral
    transform, [bins, 1]. A target at which the distribution function makes a step
    counts in each bin with its share of the step (Czado, Gneiting and Held 2009). Of
    classes, it is the number of rows in each bin of confidence, the sum of their
    confidence, and the number of them that are right, [bins, 3].
    """
    if "confidence" in scores:
        confidence = scores["confidence"]
        bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
        sums = (np.ones_like(confidence), confidence, scores["accuracy"])
        return np.stack([np.bincount(bins, part, BINS) for part in sums], axis=1)
    below, up_to = scores["pit_below"].ravel(), scores["pit_up_to"].ravel()
    edges = np.linspace(0.0, 1.0, BINS + 1)
    width = up_to - below
    step = width > 0
    inside = np.clip(edges - below[step, np.newaxis], 0.0, width[step, np.newaxis])
    shares = np.diff(inside, axis=1) / width[step, np.newaxis]
    counts, _ = np.histogram(up_to[~step], edges)
    total: np.ndarray = (counts + shares.sum(axis=0))[:, np.newaxis]
    return total
