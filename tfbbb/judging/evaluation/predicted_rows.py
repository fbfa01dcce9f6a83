"""What a model or a baseline says of rows whose targets are known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfbbb.judging.types import Prediction

LEVEL = 0.9
# In the comparison of rows with others.
_MOST_SHUFFLED, _STANDARD_ERRORS = 1000, 2.0


@dataclass(frozen=True)
class PredictedRows:
    """The scores of rows whose targets are known.

    Attributes:
        log_prob: Log density or log probability of the target, [n], in nats.
        mean: Predicted means [n, 1], or probabilities of the classes [n, c].
        coverage: Share of the targets in their 90 % intervals; None for classes.
        of_classes: Whether the targets are classes.
        tells_rows_apart: Whether the targets are more probable in their own rows than
            in others; True if unknown.
    """

    log_prob: np.ndarray
    mean: np.ndarray
    coverage: float | None = None
    of_classes: bool = False
    tells_rows_apart: bool = True

    @classmethod
    def score(
        cls, prediction: Prediction, targets: np.ndarray, coverage: float | None = None
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
            from tfbbb.prediction.target_scores import in_intervals

            coverage = float(np.mean(in_intervals(prediction, targets, [LEVEL])))
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


def tells_rows_apart(
    prediction: Prediction, targets: np.ndarray, log_prob: np.ndarray
) -> bool:
    """Returns whether targets are more probable in their own rows than in others.

    A prediction that is the same for all rows may be more probable than a constant
    normal, because of its form: nothing is learned from the features.

    Args:
        prediction: A `tfbbb.Predictive` of n rows, of one target or of classes.
        targets: Their targets.
        log_prob: The log density or probability of the targets, [n].
    """
    chosen = np.random.default_rng(0).permutation(len(targets))[:_MOST_SHUFFLED]
    if len(chosen) < 2:
        return True
    elsewhere = prediction.take(chosen).log_prob(targets[np.roll(chosen, 1)])
    gains = log_prob[chosen] - np.asarray(elsewhere, np.float64)
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    return bool(gains.mean() > _STANDARD_ERRORS * error)


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
