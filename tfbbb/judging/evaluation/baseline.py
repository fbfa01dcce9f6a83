"""Simple models that a network must beat."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, log_softmax, logsumexp, ndtri

from tfbbb.base.row_weights import effective_rows
from tfbbb.base.types import Config
from tfbbb.judging.evaluation.predicted_rows import (
    KAPLAN_MEIER,
    LEVEL,
    PredictedRows,
)
from tfbbb.tables.groups_and_times import merge_copies

LINEAR_MODEL = "linear model"
_ALPHAS = np.logspace(-2, 4, 7)
_LEAST_LOG_PROB = -1e4
# Of the optimiser of the logistic model.
_MOST_ITERATIONS = 100


@dataclass(frozen=True)
class Baseline:
    """A linear model of standardised features; without weights, a constant.

    For a number y, `y ~ N(bias + weights' f, scale^2)`; for whole numbers the
    probability of y is that of the interval from y - 1/2 to y + 1/2, and for one of the
    `masses`, an end of the targets, that of all numbers beyond it. For classes,
    `p(y = c) = softmax(bias + weights' f)_c`.

    Attributes:
        name: What the baseline is, for people.
        bias: [outputs], one output for a number, one per class.
        weights: [features, outputs]; None for a constant.
        scale: Standard deviation of a number; None for classes.
        discrete: Whether the numbers are whole.
        masses: The numbers that have a probability of their own: the least target, and
            the greatest one if there are two.
        curve: Of times that may be cut off, those of events [m], and the share of rows
            that outlives each [m]: Kaplan and Meier's estimate. Its log likelihood is
            that of a log-normal time with `log y ~ N(bias, scale^2)`.
    """

    name: str
    bias: np.ndarray
    weights: np.ndarray | None = None
    scale: float | None = None
    discrete: bool = False
    masses: tuple[float, ...] = ()
    curve: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of_times(
        cls, targets: np.ndarray, weights: np.ndarray | None = None
    ) -> "Baseline":
        """Fits the curve of times and events, [n, 2]."""
        from tfbbb.bayes.likelihoods.log_scale import log_moments
        from tfbbb.prediction.survival_scores import kaplan_meier

        times, happened = targets[:, 0].astype(np.float64), targets[:, 1] == 1.0
        location, scale = log_moments(np.log(times), happened)
        curve = kaplan_meier(times, happened, weights)
        return cls(KAPLAN_MEIER, np.array([location]), scale=float(scale), curve=curve)

    @classmethod
    def constant(
        cls,
        targets: np.ndarray,
        num_classes: int = 0,
        discrete: bool = False,
        weights: np.ndarray | None = None,
        masses: tuple[float, ...] = (),
    ) -> "Baseline":
        """Fits the mean and standard deviation, or the shares of the classes."""
        weights = np.ones(len(targets)) if weights is None else weights
        if num_classes:
            # One more row of each, so that no class is impossible.
            counts = np.bincount(targets, weights, minlength=num_classes) + 1.0
            return cls("commonest class", np.log(counts / counts.sum()))
        values = np.asarray(targets, np.float64).reshape(-1)
        mean, number = np.average(values, weights=weights), effective_rows(weights)
        square = np.average(np.square(values - mean), weights=weights)
        scale = float(np.sqrt(square * number / (number - 1))) if number > 1 else 0.0
        return cls(
            "mean",
            np.array([mean]),
            scale=positive_scale(scale, values),
            discrete=discrete,
            masses=masses,
        )

    @classmethod
    def linear(
        cls,
        features: np.ndarray,
        targets: np.ndarray,
        discrete: bool = False,
        weights: np.ndarray | None = None,
        masses: tuple[float, ...] = (),
    ) -> "Baseline":
        """Fits a ridge regression, whose penalty errors of rows left out choose."""
        from sklearn.linear_model import RidgeCV

        values = np.asarray(targets, np.float64).reshape(-1)
        # Copies of a row are left out with it.
        places, counts = merge_copies(features, values, weights)
        model = RidgeCV(_ALPHAS, store_cv_results=True)
        model.fit(features[places], values[places], sample_weight=counts)
        chosen = int(np.argmin(np.abs(_ALPHAS - model.alpha_)))
        # Each squared error is multiplied by its weight.
        errors = model.cv_results_.reshape(len(places), -1)[:, chosen]
        return cls(
            LINEAR_MODEL,
            np.array([model.intercept_]),
            model.coef_.reshape(-1, 1),
            positive_scale(float(np.sqrt(errors.sum() / counts.sum())), values),
            discrete,
            masses,
        )

    @classmethod
    def logistic(
        cls,
        features: np.ndarray,
        targets: np.ndarray,
        num_classes: int,
        weights: np.ndarray | None = None,
    ) -> "Baseline":
        """Fits a logistic regression, with scikit-learn's default penalty."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        known = np.unique(targets)
        bias = np.zeros(num_classes)
        slopes = np.zeros((features.shape[1], num_classes))
        if len(known) > 1:
            model = LogisticRegression(max_iter=_MOST_ITERATIONS)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(features, targets, weights)
            if len(known) == 2:
                bias[known[1]], slopes[:, known[1]] = (
                    model.intercept_[0],
                    model.coef_[0],
                )
            else:
                bias[known], slopes[:, known] = model.intercept_, model.coef_.T
        unknown = np.setdiff1d(np.arange(num_classes), known)
        if len(unknown):
            # A class without a training row is as probable as half a row.
            logits = features @ slopes[:, known] + bias[known]
            others = logsumexp(logits, axis=1).mean()
            bias[unknown] = others - np.log(2.0 * len(targets))
        return cls("logistic model", bias, slopes)

    def predict(
        self,
        features: np.ndarray | None,
        targets: np.ndarray,
        relative: np.ndarray | None = None,
    ) -> PredictedRows:
        """Predicts and scores rows by their targets; a constant has no features."""
        if self.curve is not None:
            return self._predict_times(np.asarray(targets, np.float64))
        outputs = np.broadcast_to(self.bias, (len(targets), len(self.bias)))
        if self.weights is not None:
            assert features is not None
            outputs = outputs + features @ self.weights
        if self.scale is None:
            logits = log_softmax(outputs, axis=1)
            log_prob = logits[np.arange(len(targets)), targets]
            return PredictedRows(log_prob, np.exp(logits), of_classes=True)
        return score_numbers(
            outputs, self.scale, targets, self.discrete, relative, self.masses
        )

    def _predict_times(self, targets: np.ndarray) -> PredictedRows:
        from tfbbb.prediction.survival_scores import (
            brier_of_rows,
            held_in_intervals,
            scored_times,
            step,
        )

        assert self.curve is not None
        assert self.scale is not None
        logs, happened = np.log(targets[:, 0]), targets[:, 1] == 1.0
        z = (logs - self.bias) / self.scale
        density = _log_density(z) - np.log(self.scale) - logs
        log_prob = np.where(happened, density, log_ndtr(-z))
        alike = (len(targets), 1)
        survival = np.tile(step(self.curve, scored_times(targets)), alike)
        up_to = 1.0 - step(self.curve, targets[:, 0])
        return PredictedRows(
            np.maximum(log_prob, _LEAST_LOG_PROB),
            # It tells no row from another, whichever rows it was fitted to.
            np.ones(alike),
            held_in_intervals(up_to, happened, LEVEL),
            scores=brier_of_rows(survival, targets),
        )

    def to_dict(self) -> Config:
        """Returns the baseline as plain JSON values."""
        return {
            "name": self.name,
            "bias": self.bias.tolist(),
            "weights": None if self.weights is None else self.weights.tolist(),
            "scale": self.scale,
            "discrete": self.discrete,
            "curve": None if self.curve is None else [x.tolist() for x in self.curve],
            "masses": list(self.masses),
        }

    @classmethod
    def from_dict(cls, values: Config) -> "Baseline":
        """Creates a baseline from the result of `to_dict`."""
        weights, curve = values["weights"], values.get("curve")
        arrays: dict[str, Any] = {
            "curve": None if curve is None else tuple(map(np.asarray, curve)),
            "bias": np.asarray(values["bias"], np.float64),
            "weights": None if weights is None else np.asarray(weights, np.float64),
            "masses": tuple(values.get("masses", ())),
        }
        return cls(**{**values, **arrays})


def _log_density(z: np.ndarray) -> np.ndarray:
    """Returns that of the standard normal; importing `scipy.stats` takes long."""
    return -0.5 * np.square(z) - 0.5 * np.log(2.0 * np.pi)


def score_numbers(
    means: np.ndarray,
    scale: float | np.ndarray,
    targets: np.ndarray,
    discrete: bool = False,
    relative: np.ndarray | None = None,
    masses: tuple[float, ...] = (),
) -> PredictedRows:
    """Scores numbers by `y ~ N(u * mean, u * scale^2)`, u `relative` or 1."""
    if relative is not None:
        means, scale = means * relative[:, np.newaxis], scale * np.sqrt(relative)
    values = np.asarray(targets, np.float64).reshape(-1)
    z = (values - means[:, 0]) / scale
    if discrete:
        half = 0.5 / scale
        # In the tail where probabilities are small, for precision.
        distance = np.abs(z)
        above, beyond = log_ndtr(half - distance), log_ndtr(-half - distance)
        log_prob = above + np.log1p(-np.exp(beyond - above))
    else:
        log_prob = _log_density(z) - np.log(scale)
    for value, sign in zip(masses, (-1.0, 1.0), strict=False):
        log_prob = np.where(values == value, log_ndtr(-sign * z), log_prob)
    return PredictedRows(
        np.maximum(log_prob, _LEAST_LOG_PROB),
        means,
        np.abs(z) <= ndtri(0.5 + LEVEL / 2),
    )


def positive_scale(scale: float, values: np.ndarray) -> float:
    """Returns a standard deviation that a density can have."""
    if not len(values):
        return max(scale, 1e-6)
    # Targets have single precision, unless it would lose their differences.
    single = 1e-7 * float(np.abs(values).max())
    least = min(single, 1e-3 * float(np.std(values))) or 1e-6
    return max(scale, least)
