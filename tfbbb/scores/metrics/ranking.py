"""Scores of the order that uncertainty gives to rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbbb.base.numbers import choice
from tfbbb.base.types import ArrayLike
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes
from tfbbb.scores.metrics.arguments import with_arguments
from tfbbb.scores.metrics.targets import checked_targets

_OF_CLASSES = ("entropy", "mutual_information")
_OF_BOTH = ("epistemic", "aleatoric", "variance")


@dataclass(frozen=True)
class RiskCoverageCurve:
    """The mean loss of the most certain rows, against their share.

    Attributes:
        coverage: Shares of the rows, `1/n, 2/n, ..., 1`, [rows].
        risk: Mean loss of that share of the most certain rows, [rows].
    """

    coverage: np.ndarray
    risk: np.ndarray

    @property
    def area(self) -> float:
        """Mean risk over the coverages (AURC, Geifman et al. 2019)."""
        return float(self.risk.mean())


@with_arguments
def risk_coverage_curve(
    prediction: Predictive, y: ArrayLike, *, by: str | None = None
) -> RiskCoverageCurve:
    """Computes the risk of predicting only the most certain rows, against their share.

    `risk_i` is the mean loss of the i most certain rows (El-Yaniv and Wiener 2010). The
    loss of a row is 1 for a wrong class, and the squared error of the mean for numbers
    (averaged over targets). Rows of equal uncertainty come in random order; the result
    is the expectation over that order.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> prediction = model.predictive([[9.0, 9.0], [0.1, 0.1]])
    >>> curve = tfbbb.metrics.risk_coverage_curve(
    ...     prediction, prediction.mean + [[2.0], [0.0]]
    ... )
    >>> curve.coverage, curve.risk  # the second row is the more certain one
    (array([0.5, 1. ]), array([0., 2.]))
    """
    check_uncertainty(by)
    targets = checked_targets(prediction, y, "any", "risk_coverage_curve")
    losses = row_losses(prediction, targets)
    by = named_uncertainty(prediction, by, "variance")
    _, ties, sizes = np.unique(
        uncertainty(prediction, by), return_inverse=True, return_counts=True
    )
    answered = np.arange(1, len(losses) + 1)
    in_order = np.repeat(np.bincount(ties, weights=losses) / sizes, sizes)
    return RiskCoverageCurve(
        coverage=answered / len(losses), risk=np.cumsum(in_order) / answered
    )


@with_arguments
def out_of_distribution_auroc(
    inside: Predictive, outside: Predictive, *, by: str | None = None
) -> float:
    """Computes the area under the receiver operating characteristic.

    It is the probability that a row from outside is more uncertain than a row from
    inside; ties count half (Hendrycks and Gimpel 2017). It is 1 for perfect separation
    and 0.5 for uninformative uncertainty.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> near, far = model.predictive([[0.1, 0.1]]), model.predictive([[9.0, 9.0]])
    >>> tfbbb.metrics.out_of_distribution_auroc(near, far)
    1.0
    """
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(*_marks_and_scores(inside, outside, by)))


@with_arguments
def out_of_distribution_aupr(
    inside: Predictive, outside: Predictive, *, by: str | None = None
) -> float:
    """Computes the average precision, the area under precision against recall.

    `sum_n (R_n - R_{n-1}) P_n` over thresholds of the uncertainty, where the rows from
    outside are the positives. For uninformative uncertainty it is the share of these
    rows.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> near, far = model.predictive([[0.1, 0.1]]), model.predictive([[9.0, 9.0]])
    >>> tfbbb.metrics.out_of_distribution_aupr(near, far, by="variance")
    1.0
    """
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(*_marks_and_scores(inside, outside, by)))


def row_losses(prediction: Predictive, targets: np.ndarray) -> np.ndarray:
    """Returns the loss of each row, [rows]: see `risk_coverage_curve`."""
    if is_of_classes(prediction):
        losses = np.argmax(prediction.probabilities, axis=-1) != targets
    else:
        losses = np.square(np.asarray(prediction.mean, np.float64) - targets)
    return np.mean(losses.reshape(len(losses), -1), axis=1)


def _marks_and_scores(
    inside: Predictive, outside: Predictive, by: str | None
) -> tuple[np.ndarray, np.ndarray]:
    check_uncertainty(by)
    if is_of_classes(inside) != is_of_classes(outside):
        raise ValueError(
            "Both predictions must come from the same model. "
            f"Received: inside={inside!r}, outside={outside!r}"
        )
    by = named_uncertainty(inside, by, "epistemic")
    scores = [uncertainty(part, by) for part in (inside, outside)]
    marks = np.repeat([0, 1], [len(part) for part in scores])
    return marks, np.concatenate(scores)


def check_uncertainty(by: str | None) -> None:
    """Raises ValueError if `by` is neither the name of an uncertainty nor None."""
    if by is not None:
        choice("by", by, (*_OF_CLASSES, *_OF_BOTH))


def named_uncertainty(prediction: Predictive, by: str | None, of_numbers: str) -> str:
    """Returns `by`, or if it is None "entropy" for classes and `of_numbers` else."""
    return by or ("entropy" if is_of_classes(prediction) else of_numbers)


def uncertainty(prediction: Predictive, by: str) -> np.ndarray:
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
            "Epistemic uncertainty needs at least two draws: raise `num_samples`. "
            f"Received: by={by!r}"
        )
    values = np.asarray(getattr(prediction, by), np.float64)
    return values.reshape(len(values), -1).sum(axis=1)
