"""What a model or a baseline says of rows whose targets are known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

LEVEL = 0.9


@dataclass(frozen=True)
class PredictedRows:
    """The scores of rows whose targets are known.

    Attributes:
        log_prob: Log density or log probability of the target, [n], in nats.
        mean: Predicted means [n, 1], or probabilities of the classes [n, c].
        coverage: Share of the targets in their 90 % intervals; None for classes.
        of_classes: Whether the targets are classes.
    """

    log_prob: np.ndarray
    mean: np.ndarray
    coverage: float | None = None
    of_classes: bool = False

    @classmethod
    def score(
        cls, prediction: Any, targets: np.ndarray, coverage: float | None = None
    ) -> "PredictedRows":
        """Scores a prediction.

        Args:
            prediction: A `tfbbb.Predictive` of n rows, of one target or of classes.
            targets: Targets [n, 1], or class indices [n].
            coverage: The coverage of its 90 % intervals, if it is known already.
        """
        log_prob = np.asarray(prediction.log_prob(targets), np.float64)
        if hasattr(prediction, "probabilities"):
            return cls(log_prob, np.asarray(prediction.probabilities), of_classes=True)
        if coverage is None:
            lower, upper = prediction.interval(LEVEL)
            coverage = float(np.mean((lower <= targets) & (targets <= upper)))
        return cls(log_prob, np.asarray(prediction.mean), coverage)

    def take(self, rows: np.ndarray) -> "PredictedRows":
        """Returns some of the rows, without their coverage.

        Args:
            rows: Indices of the rows.
        """
        return PredictedRows(
            self.log_prob[rows], self.mean[rows], of_classes=self.of_classes
        )

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities of the classes, [n, c]; of numbers an AttributeError."""
        if not self.of_classes:
            raise AttributeError("Only predictions of classes have probabilities.")
        return self.mean

    def errors(self, targets: np.ndarray) -> np.ndarray:
        """Returns squared errors, or 1 for a wrong class and 0 for the right one, [n].

        Args:
            targets: Targets [n, 1], or class indices [n].
        """
        if self.of_classes:
            return (self.mean.argmax(axis=1) != targets).astype(np.float64)
        differences = np.asarray(self.mean, np.float64) - targets
        return np.square(differences).reshape(len(targets), -1).sum(axis=1)


def joined(parts: Sequence[PredictedRows], rows: Sequence[np.ndarray]) -> PredictedRows:
    """Returns the predictions of groups of rows as one.

    Args:
        parts: The predictions of each group.
        rows: The indices of the rows of each group, which together are all rows.
    """
    back = np.argsort(np.concatenate(rows))
    coverage = None
    if not parts[0].of_classes:
        shares = [part.coverage or 0.0 for part in parts]
        coverage = float(np.average(shares, weights=[len(part) for part in rows]))
    return PredictedRows(
        np.concatenate([part.log_prob for part in parts])[back],
        np.concatenate([part.mean for part in parts])[back],
        coverage,
        parts[0].of_classes,
    )
