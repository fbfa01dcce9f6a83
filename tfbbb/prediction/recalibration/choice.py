"""Chooses the recalibration that helps on rows that it was not fitted to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tfbbb.base.row_weights import effective_rows, mean_and_error
from tfbbb.base.texts import snake_case
from tfbbb.base.types import ArrayLike, Config
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.recalibration.conformal import LEAST_ROWS_OF_GROUP, Conformal
from tfbbb.prediction.recalibration.cross_fitted import FOLDS, CrossFitted, HeldOut
from tfbbb.prediction.recalibration.fitting import conformal, richer, suitable
from tfbbb.prediction.recalibration.isotonic_pit import IsotonicPIT
from tfbbb.prediction.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import in_boxes, in_intervals

# Levels whose coverage decides about conformal intervals and sets. Of four fifths of
# the least number of rows, one score lies beyond the last.
_LEVELS = (0.5, 0.9, 0.95)
_LEAST_CONFORMAL = 25
# Coverage is what intervals promise, so they may be a little longer for it.
_WORST_INTERVAL_SCORE = 1.05
# A recalibration may change means, which the likelihood hardly notices.
_WORST_ERROR = 1.05
_MOST_TRIED = 2000
# In the report.
_MOST_GROUPS = 100


@dataclass(frozen=True)
class Choice:
    """A recalibration, and why it was chosen.

    Attributes:
        recalibration: The recalibration, fitted to all rows; None for none.
        prediction: The prediction of the rows as it is answered, for scores: each row
            is recalibrated by rows of other folds.
        report: What was tried with which scores, what was chosen and why, as plain JSON
            values.
    """

    recalibration: Recalibration | None
    prediction: Predictive
    report: Config


def choose(
    likelihood: Likelihood,
    prediction: Predictive,
    targets: ArrayLike,
    method: Recalibration | Literal["auto"] = "auto",
    *,
    by: str | int | None = None,
    labels: np.ndarray | None = None,
    together: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Choice:
    """Chooses a recalibration by cross-validation within held-out rows.

    `"auto"` tries one factor, `Temperature` or `VarianceScaling`, or `IsotonicPIT`
    where no factor suits the likelihood: its means and variances need dozens of
    quantiles of each row. Of at most 30 classes it tries `Platt` and `VectorScaling`
    too, each of which must be better than those before by one standard error. It keeps
    a factor if it raises the log-likelihood of rows that it was not fitted to, and
    `IsotonicPIT` if by more than one standard error, unless the squared error of the
    means is worse by more than 5 %. On top, it keeps conformal intervals or sets if the
    coverage without them misses one of the levels 0.5, 0.9 and 0.95 by more than one
    standard error, theirs is closer and, for intervals, the interval score (Gneiting
    and Raftery 2007) is worse by 5 % at most. With groups, it always keeps them. It
    does not try them on top of `IsotonicPIT`, whose intervals lie between calibrated
    quantiles, unless there are groups. It compares at most 2000 rows, drawn at random.
    It fits the chosen recalibration to all rows.

    A given method is only scored. If there are too few rows, the choice is none.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> x = np.random.normal(size=(200, 2))
    >>> prediction = model.predictive(x)
    >>> y = prediction.mean + 5.0 * prediction.stddev * np.random.normal(size=(200, 1))
    >>> choice = tfbbb.recalibration.choose(model.likelihood, prediction, y)
    >>> model.recalibration = choice.recalibration
    >>> choice.report["chosen"].startswith("variance_scaling")
    True

    Args:
        likelihood: p(y | outputs).
        prediction: The prediction of the held-out rows, not recalibrated.
        targets: The targets of these rows.
        method: `"auto"`, or the recalibration to fit.
        by: The input that tells groups apart: see `tfbbb.recalibrate`.
        labels: The values of this input, [rows].
        together: The group of each row, [rows], such as copies of a row, of which the
            cross-validation leaves out all rows or none; None for a group per row.
        weights: The weight of each row, [rows], positive; None for 1.
    """
    targets = np.asarray(likelihood.check_targets(targets))
    weights = np.ones(len(targets)) if weights is None else weights
    whole = trial = _Trial(
        HeldOut(likelihood, prediction, targets, by, labels, together, weights)
    )
    if method == "auto" and len(targets) > _MOST_TRIED:
        order = np.random.default_rng(0).permutation(len(targets))
        trial = _Trial(whole.rows.take(np.sort(order[:_MOST_TRIED])))
    plain = trial.score("none", trial.rows.prediction)
    if method == "auto":
        chosen, reason = _choose(trial, plain)
    else:
        chosen, reason = _given(trial, method)
    if chosen is not None and trial is not whole:
        found = whole.fit(chosen[0])
        chosen, reason = (None, found) if isinstance(found, str) else (found, reason)
    fitted, scored = (None, prediction) if chosen is None else chosen
    report = {
        "chosen": "none" if fitted is None else describe(fitted),
        "reason": reason,
        "num_rows": len(targets),
        "num_rows_tried": len(trial.rows.targets),
        "folds": FOLDS,
        "tried": trial.tried,
    }
    if labels is not None:
        report["groups"] = whole.groups(scored)[:_MOST_GROUPS]
    return Choice(fitted, scored, report)


def describe(recalibration: Recalibration) -> str:
    """Returns the names of a recalibration and of its density."""
    own = snake_case(type(recalibration).__name__)
    density = recalibration.density
    if density is recalibration or density == IDENTITY:
        return own
    return f"{describe(density)}, {own}"


Fitted = tuple[Recalibration, CrossFitted]


class _Trial:
    """Fits recalibrations to rows, and scores them on other rows."""

    def __init__(self, rows: HeldOut):
        assert rows.weights is not None
        self.rows, self.weights = rows, rows.weights
        self.is_classes = rows.likelihood.task == "classification"
        self.has_boxes = getattr(rows.likelihood, "num_targets", 1) > 1
        # Number of rows of equal weight that count as much.
        self.num_rows = effective_rows(self.weights)
        self.tried: list[Config] = []

    def fit(self, method: Recalibration) -> Fitted | str:
        """Returns the fitted recalibration with its prediction of other rows.

        Or why it cannot be fitted.
        """
        least = math.ceil(method.least_rows * FOLDS / (FOLDS - 1))
        if method.conformal:
            least = max(least, _LEAST_CONFORMAL)
        if self.num_rows < least:
            return (
                f"{describe(method)} needs {least} held-out rows for its fit and its "
                f"scores, and there are {self.num_rows}."
            )
        try:
            fitted = self.rows.fit(method)
            return fitted, CrossFitted(fitted, self.rows)
        except ValueError as error:
            return f"{describe(method)} cannot be fitted: {error}."

    def score(self, name: str, prediction: Predictive) -> Config:
        """Returns the scores of a prediction, each row's where they are compared."""
        log_probs = prediction.log_prob(self.rows.targets)
        covered = self._covered(prediction, _LEVELS)
        names = [f"coverage_{100 * level:g}" for level in _LEVELS]
        levels = np.array(_LEVELS)
        if self.has_boxes:
            boxes = in_boxes(prediction, self.rows.targets, _LEVELS)
            covered += list(np.moveaxis(boxes, 1, 0))
            names += [f"joint_{name}" for name in names]
            levels = np.tile(levels, 2)
        coverage = [self._mean(inside) for inside in covered]
        summary = dict(zip(names, coverage, strict=True))
        scores: Config = {"log_probs": log_probs, "prediction": prediction}
        misses = np.abs(coverage - levels)
        scores["coverage_error"] = np.mean(misses)
        errors = np.sqrt(levels * (1.0 - levels) / self.num_rows)
        scores["misses_a_level"] = np.any(misses > errors)
        if self.is_classes:
            sizes = prediction.prediction_set(0.9).sum(axis=-1)
            summary["set_size_90"] = self._mean(sizes)
        log_likelihood = self._mean(log_probs)
        self.tried.append({"name": name, "log_likelihood": log_likelihood, **summary})
        return scores

    def squared_error(self, prediction: Predictive) -> float:
        """Returns the mean squared error, never 0; 1 for classes."""
        if self.is_classes:
            return 1.0
        errors = np.asarray(prediction.mean) - self.rows.targets
        return self._mean(np.square(errors)) or 1e-300

    def groups(self, prediction: Predictive) -> list[Config]:
        """Returns the number of rows and the coverage of each group."""
        labels = self.rows.labels
        assert labels is not None
        (covered,) = self._covered(prediction, [0.9])
        found = []
        for value in dict.fromkeys(labels.tolist()):
            missing = isinstance(value, float) and math.isnan(value)
            rows = np.isnan(labels) if missing else labels == value
            number = effective_rows(self.weights[rows])
            found.append(
                {
                    "value": None if missing else value,
                    "num_rows": int(rows.sum()),
                    "own": number >= LEAST_ROWS_OF_GROUP,
                    "coverage_90": self._mean(covered[rows], self.weights[rows]),
                }
            )
        return sorted(found, key=lambda group: -group["num_rows"])

    def _covered(
        self, prediction: Predictive, levels: Sequence[float]
    ) -> list[np.ndarray]:
        """Returns whether intervals or sets of each level contain the targets."""
        if not self.is_classes:
            held = np.asarray(in_intervals(prediction, self.rows.targets, levels))
            return list(np.moveaxis(held, 1, 0))
        places = self.rows.targets[..., np.newaxis]
        return [
            np.take_along_axis(prediction.prediction_set(level), places, axis=-1)
            for level in levels
        ]

    def interval_score(self, prediction: Predictive) -> float:
        """Returns the interval score, averaged over levels, rows and targets.

        Unlike the coverage, it takes a search for quantiles; 1 for classes.
        """
        if self.is_classes:
            return 1.0
        targets = self.rows.targets[:, np.newaxis]
        lower, upper = prediction.interval(_LEVELS)
        tails = 0.5 * (1.0 - np.array(_LEVELS))
        # [Q] against [rows, Q, ..., k].
        tails = tails.reshape(-1, *[1] * (lower.ndim - 2))
        missed = np.maximum(lower - targets, 0.0) + np.maximum(targets - upper, 0.0)
        return self._mean(tails * (upper - lower) + missed)

    def _mean(self, values: ArrayLike, weights: np.ndarray | None = None) -> float:
        """Returns the mean over the rows, by their weights, of values [rows, ...]."""
        by_row = np.asarray(values, np.float64).reshape(len(values), -1).mean(axis=1)
        weights = self.weights if weights is None else weights
        return float(np.average(by_row, weights=weights))


def _choose(trial: _Trial, plain: Config) -> tuple[Fitted | None, str]:
    best, scores, of_density = _choose_density(trial, plain)
    density = IDENTITY if best is None else best[0]
    if isinstance(density, IsotonicPIT) and trial.rows.labels is None:
        return best, of_density
    top = trial.fit(conformal(trial.rows.likelihood, density))
    if isinstance(top, str):
        return best, of_density if top == of_density else f"{of_density} {top}"
    helps, of_conformal = _judge_conformal(trial, top, scores)
    # What is kept comes first.
    if helps and best is None:
        return top, f"{of_conformal} {of_density}"
    return top if helps else best, f"{of_density} {of_conformal}"


def _choose_density(trial: _Trial, plain: Config) -> tuple[Fitted | None, Config, str]:
    """Returns a recalibration of the density or None, its scores, and the reason."""
    method = suitable(trial.rows.likelihood)
    if method is None:
        return None, plain, "No recalibration of the density suits the likelihood."
    found = trial.fit(method)
    if isinstance(found, str):
        return None, plain, found
    scores = trial.score(describe(found[0]), found[1])
    for other in richer(trial.rows.likelihood):
        fitted = trial.fit(other)
        if isinstance(fitted, str):
            continue
        of_other = trial.score(describe(fitted[0]), fitted[1])
        gains = of_other["log_probs"] - scores["log_probs"]
        gain, error = mean_and_error(gains, trial.weights)
        # More numbers must help for certain.
        if gain > error:
            found, scores = fitted, of_other
    gains = scores["log_probs"] - plain["log_probs"]
    gain, error = mean_and_error(gains, trial.weights)
    rows = "the log-likelihood of rows that it was not fitted to"
    # Answers of `IsotonicPIT` take longer, so it must help for certain.
    certain = isinstance(method, IsotonicPIT)
    if gain > (error if certain else 0.0):
        # Means by `IsotonicPIT` take dozens of quantiles: only those that matter.
        ratio = trial.squared_error(found[1]) / trial.squared_error(
            trial.rows.prediction
        )
        if ratio > _WORST_ERROR:
            reason = f"With {describe(found[0])} the squared error is {ratio:.3g} times"
            return None, plain, f"{reason} that without it."
        return (
            found,
            scores,
            f"{describe(found[0])} raises {rows} by {gain:.3g} nats per row, with a "
            f"standard error of {error:.2g}.",
        )
    by_more = " by more than one standard error" if certain else ""
    return None, plain, f"{describe(found[0])} does not raise {rows}{by_more}."


def _judge_conformal(trial: _Trial, top: Fitted, scores: Config) -> tuple[bool, str]:
    """Returns whether the intervals or sets `top` help, and a sentence about it."""
    of_top = trial.score(describe(top[0]), top[1])
    kind = snake_case(type(top[0]).__name__).replace("_", " ").capitalize()
    closer = of_top["coverage_error"] < scores["coverage_error"]
    errors = (
        f"the coverage of rows that they were not fitted to differs from the level by "
        f"{of_top['coverage_error']:.3f} on average, without them by "
        f"{scores['coverage_error']:.3f}"
    )
    if trial.rows.labels is not None:
        return True, f"{kind} hold in each group; {errors}."
    if not scores["misses_a_level"]:
        return False, (
            f"{kind} are not needed: without them the coverage is within one standard "
            "error of each level."
        )
    if closer:
        ratio = trial.interval_score(top[1])
        ratio /= trial.interval_score(scores["prediction"])
        if ratio <= _WORST_INTERVAL_SCORE:
            return True, f"{kind} help: {errors}."
        errors = f"their interval score is worse by {ratio - 1.0:.0%}"
    return False, f"{kind} are left out: {errors}."


def _given(trial: _Trial, method: Recalibration) -> tuple[Fitted | None, str]:
    if trial.rows.labels is not None and not isinstance(method, Conformal):
        method = conformal(trial.rows.likelihood, method)
    found = trial.fit(method)
    if isinstance(found, str):
        return None, found
    trial.score(describe(found[0]), found[1])
    return found, f"The job asks for {describe(found[0])}."
