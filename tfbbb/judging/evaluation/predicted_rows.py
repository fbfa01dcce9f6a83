"""What a model or a baseline says of rows whose targets are known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfbbb.base.row_weights import effective_rows, mean_and_error
from tfbbb.judging.types import Prediction

# The baseline of times that may be cut off.
KAPLAN_MEIER = "Kaplan-Meier curve"
LEVEL = 0.9
# In the comparison of rows with others.
_MOST_SHUFFLED, _STANDARD_ERRORS = 1000, 2.0
_TINY = 1e-300


@dataclass(frozen=True)
class PredictedRows:
    """The scores of rows whose targets are known.

    Attributes:
        log_prob: Log density or log probability of the target, [n], in nats.
        mean: Predicted means [n, k], or probabilities of the classes [n, c].
        covered: Whether the targets are in their 90 % intervals, [n], the share of
            several; None for classes.
        beyond: Whether the targets are at the lower end or below, and at the upper end
            or above, [n, 2], where single numbers have a probability; else None.
        of_classes: Whether the targets are classes.
        tells_rows_apart: Whether the targets are more probable in their own rows than
            in others; True if unknown.
        weights: The weight of each row, [n]; None for 1.
        scores: Of times that may be cut off, the integrated Brier score of each row,
            [n]; else None.
        of_targets: The scores of each of several targets alone; else empty.
    """

    log_prob: np.ndarray
    mean: np.ndarray
    covered: np.ndarray | None = None
    beyond: np.ndarray | None = None
    of_classes: bool = False
    tells_rows_apart: bool = True
    weights: np.ndarray | None = None
    scores: np.ndarray | None = None
    of_targets: tuple["PredictedRows", ...] = ()

    @classmethod
    def together(cls, of_targets: Sequence["PredictedRows"]) -> "PredictedRows":
        """Returns the scores of independent predictions of several targets."""
        if len(of_targets) == 1:
            return of_targets[0]
        return cls(
            np.sum([each.log_prob for each in of_targets], axis=0),
            np.concatenate([each.mean for each in of_targets], axis=1),
            np.mean([np.asarray(each.covered) for each in of_targets], axis=0),
            of_targets=tuple(of_targets),
        )

    @classmethod
    def score(
        cls,
        prediction: Prediction,
        targets: np.ndarray,
        covered: np.ndarray | None = None,
    ) -> "PredictedRows":
        """Scores a prediction; which intervals hold targets may be known, [n, k]."""
        log_prob = np.asarray(prediction.log_prob(targets), np.float64)
        scores: Any = None
        if getattr(prediction, "censored", False):
            from tfbbb.prediction.survival_scores import integrated_brier_score

            of_times: Any = prediction
            scores = integrated_brier_score(of_times, targets, per_row=True)
        if hasattr(prediction, "probabilities"):
            return cls(log_prob, np.asarray(prediction.probabilities), of_classes=True)
        if covered is None:
            from tfbbb.prediction.target_scores import in_intervals

            covered = np.asarray(in_intervals(prediction, targets, [LEVEL]))[:, 0]
        covered = covered.reshape(len(targets), -1)
        if scores is None and targets.shape[1] > 1:
            places = range(targets.shape[1])
            alone = [
                cls.score(prediction.of_target(j), targets[:, [j]], covered[:, [j]])
                for j in places
            ]
            return replace(cls.together(alone), log_prob=log_prob)
        beyond = None
        if getattr(prediction, "discrete", False) or getattr(prediction, "masses", ()):
            lower, upper = prediction.interval(LEVEL)
            ends = targets <= lower, targets >= upper
            beyond = np.stack([end.mean(axis=1) for end in ends], axis=1)
        mean = np.asarray(prediction.mean)
        return cls(log_prob, mean, covered[:, 0], beyond, scores=scores)

    @property
    def num_rows(self) -> int:
        """Number of rows of equal weight that count as much."""
        count = len(self.log_prob)
        return count if self.weights is None else effective_rows(self.weights)

    @property
    def coverage(self) -> float | None:
        """Share of the targets in their 90 % intervals; None for classes."""
        return None if self.covered is None else self.average(self.covered)

    def average(self, values: np.ndarray) -> float:
        """Returns the mean of one value per row, [n], by the weights of the rows."""
        return float(np.average(values, weights=self.weights))

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities of the classes, [n, c]; of numbers an AttributeError."""
        if not self.of_classes:
            raise AttributeError("Only predictions of classes have probabilities.")
        return self.mean

    def errors(self, targets: np.ndarray) -> np.ndarray:
        """Returns squared errors, or 1 for a wrong class and 0 for the right, [n].

        Those of several targets are in units of their variances, and averaged; of times
        that may be cut off they are the `scores`.
        """
        if self.scores is not None:
            return self.scores
        if self.of_classes:
            return (self.mean.argmax(axis=1) != targets).astype(np.float64)
        differences = np.asarray(self.mean, np.float64) - targets
        if differences.shape[1] > 1:
            differences = differences / np.maximum(np.std(targets, axis=0), _TINY)
        return np.square(differences).mean(axis=1)


def tells_rows_apart(
    prediction: Prediction,
    targets: np.ndarray,
    log_prob: np.ndarray,
    weights: np.ndarray | None = None,
) -> bool:
    """Returns whether targets are more probable in their own rows than in others.

    A prediction that is the same for all rows may be more probable than a constant
    normal, because of its form: nothing is learned from the features.
    """
    chosen = np.random.default_rng(0).permutation(len(targets))[:_MOST_SHUFFLED]
    if len(chosen) < 2:
        return True
    others = np.roll(chosen, 1)[np.argsort(chosen)]
    chosen = np.sort(chosen)
    elsewhere = prediction.take(chosen).log_prob(targets[others])
    gains = log_prob[chosen] - np.asarray(elsewhere, np.float64)
    mean, error = mean_and_error(gains, None if weights is None else weights[chosen])
    return mean > _STANDARD_ERRORS * error


def joined(parts: Sequence[PredictedRows], rows: Sequence[np.ndarray]) -> PredictedRows:
    """Returns the predictions of groups of rows as one."""
    back = np.argsort(np.concatenate(rows))

    def of_all(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)[back]

    return PredictedRows(
        of_all("log_prob"),
        of_all("mean"),
        of_all("covered"),
        of_all("beyond"),
        parts[0].of_classes,
        scores=of_all("scores"),
        of_targets=tuple(
            joined(of_target, rows)
            for of_target in zip(*(part.of_targets for part in parts), strict=True)
        ),
    )
