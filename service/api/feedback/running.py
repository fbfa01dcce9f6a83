"""Running figures of a version, as the database keeps them."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from service.shared.database.tables import Feedback
from service.shared.model_messages import ScoredRows
from tfbbb.judging.drift import FALSE_ALARM_RATE, DriftTest
from tfbbb.judging.drift_reference import DriftReference, drift_scores

# Of numbers, the scores that are no figure: the probability integral transform.
_PIT = "pit"


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
    width = 2 if _PIT in scored.scores else 1
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
        if name != _PIT
    }
    test = DriftTest.from_dict(row.drift_test)
    test = test.update(drift_scores(scores["log_likelihood"], scores.get(_PIT)))
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
