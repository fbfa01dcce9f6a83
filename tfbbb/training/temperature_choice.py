"""Chooses the temperature of an ensemble by rows that its members did not train on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log

import numpy as np

from tfbbb.base.types import Structure
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.recalibration import Temperature, VarianceScaling
from tfbbb.prediction.recalibration.factors import scaling
from tfbbb.prediction.recalibration.from_outputs import predictive_from_outputs
from tfbbb.prediction.recalibration.recalibration import IDENTITY
from tfbbb.prediction.result import NotFiniteError, Predictive
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.left_out_error import Trial, is_off, most_likely, relative_error

# A factor that is fitted to n rows has a relative standard error of about
# 1 / sqrt(2 n).
_FEWEST_ROWS_TO_CALIBRATE = 20
_DRAWS_PER_ROW = 20
# Of one member: two pairs.
_FEWEST_DRAWS = 4
# The likelihood asks for more spread in the tails than intervals do, whose coverage
# needs the whole gain.
_SHARE_OF_DENSITY = 0.75


@dataclass(frozen=True)
class TemperatureChoice:
    """The mixture of the members of the best temperature.

    `gain` is by what its factor changes for the mixture of all members, three quarters
    of the way that conformal intervals go: `gain_of_intervals`. The prediction is by
    the members that left out the rows, not calibrated.
    """

    model: BayesianModel
    best: Trial
    gain: float
    gain_of_intervals: float
    trials: tuple[Trial, ...]
    prediction: Predictive


def choose(
    model: BayesianModel,
    members: MemberRows,
    inputs: Structure,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> TemperatureChoice:
    """Chooses the temperature with the greatest likelihood of rows left out.

    A temperature whose squared error is far worse than that of a constant is refused:
    see `tfbbb.training.left_out_error`.

    Each temperature is calibrated first: one factor, fitted to the rows left out. If a
    row is left out by m members, the factor suits mixtures of m members; that for all
    members is extrapolated from mixtures of one and of m members, by the law
    `log f = a + b / m` of an average of m terms.
    """
    likelihood = model.likelihood
    num_rows = len(targets)
    per_row = members.group_size if members.folds is None else len(members.folds)
    draws = max(_FEWEST_DRAWS, -(-_DRAWS_PER_ROW // per_row) // 2 * 2)
    outputs = members.out_of_sample_outputs(model, inputs, num_rows, draws)
    kind = scaling(likelihood) if num_rows >= _FEWEST_ROWS_TO_CALIBRATE else None
    trials = [
        _try(likelihood, temperature, drawn, kind, targets, weights)
        for temperature, drawn in zip(members.temperatures, outputs, strict=True)
    ]
    best = most_likely(trials)
    if not np.isfinite(best.log_likelihood):
        raise NotFiniteError("No temperature has a finite likelihood.")
    number = next(n for n, trial in enumerate(trials) if trial is best)
    drawn = outputs[number]
    gain = 1.0
    if kind is not None and per_row < members.group_size:
        of_one = [
            _fit_factor(kind(best.factor), likelihood, part, targets, weights)
            for part in np.split(drawn, per_row, axis=1)
        ]
        gain = _gain(of_one, best.factor, members.group_size)
    chosen = model
    if len(trials) > 1:
        chosen = model.members.mixture(members.group(number))
        chosen.assign_temperature(best.temperature)
    prediction = predictive_from_outputs(likelihood, drawn)
    of_density = gain**_SHARE_OF_DENSITY
    return TemperatureChoice(chosen, best, of_density, gain, tuple(trials), prediction)


def choice_with_more_rows(
    choice: TemperatureChoice,
    members: MemberRows,
    model: BayesianModel,
    left_out: MemberRows,
    inputs: Structure,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
) -> TemperatureChoice | None:
    """Returns the choice of members that saw more rows; None if rows left out lose.

    Each row is predicted before and after by the one member that still leaves it out,
    each time calibrated by one factor. The gains change by the ratio of these factors.
    """
    assert members.folds is not None
    assert left_out.folds is not None
    likelihood, num_rows = model.likelihood, len(targets)
    every = choice.prediction.of_outputs(lambda outputs: outputs)
    every = every.reshape(num_rows, len(members.folds), -1, every.shape[-1])
    before = every[np.arange(num_rows), left_out.folds[0] // members.num_folds]
    (after,) = left_out.out_of_sample_outputs(model, inputs, num_rows, before.shape[1])
    kind = scaling(likelihood) if num_rows >= _FEWEST_ROWS_TO_CALIBRATE else None
    old, new = (
        _try(likelihood, choice.best.temperature, drawn, kind, targets, weights)
        for drawn in (before, after)
    )
    if new.log_likelihood <= old.log_likelihood:
        return None
    ratio = new.factor / old.factor
    return replace(
        choice,
        gain=choice.gain * ratio,
        gain_of_intervals=choice.gain_of_intervals * ratio,
    )


def _try(
    likelihood: Likelihood,
    temperature: float,
    drawn: np.ndarray,
    kind: type[Temperature | VarianceScaling] | None,
    targets: np.ndarray,
    weights: np.ndarray | None,
) -> Trial:
    """Returns what the members of one temperature make of the rows they left out."""
    factor = 1.0
    try:
        if kind is not None:
            factor = _fit_factor(kind(), likelihood, drawn, targets, weights)
        calibration = IDENTITY if kind is None else kind(factor)
        prediction = predictive_from_outputs(likelihood, drawn, calibration)
        return Trial(
            temperature,
            float(np.average(prediction.log_prob(targets), weights=weights)),
            factor,
            relative_error(prediction, targets, weights),
            is_off(prediction, targets, weights),
        )
    except NotFiniteError:
        # These members diverged. Those of another temperature need not have.
        return Trial(temperature, -np.inf, 1.0, np.inf)


def _fit_factor(
    start: Temperature | VarianceScaling,
    likelihood: Likelihood,
    outputs: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray | None,
) -> float:
    """Returns the factor with the greatest likelihood; 1 if there is none.

    There is none if, for example, all numbers equal their predictions.
    """
    prediction = predictive_from_outputs(likelihood, outputs)
    try:
        fitted = start.fitted(likelihood, prediction, targets, weights)
    except ValueError:
        return 1.0
    if isinstance(fitted, VarianceScaling):
        # One for all targets.
        return float(np.exp(np.mean(np.log(fitted.factors))))
    return fitted.temperature


def _gain(of_one: Sequence[float], of_some: float, every: int) -> float:
    """Returns the factor of a mixture of `every` members over that of some members."""
    some = len(of_one)
    if some in (1, every):
        return 1.0
    slope = (np.mean(np.log(of_one)) - log(of_some)) / (1.0 - 1.0 / some)
    return exp(-slope * (1.0 / some - 1.0 / every))
