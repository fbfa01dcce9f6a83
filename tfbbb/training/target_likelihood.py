"""Chooses the likelihood that suits a target, before any network is trained."""

from dataclasses import dataclass

import numpy as np
import scipy.optimize
from scipy import stats

from tfbbb.base.types import Config, Structure
from tfbbb.bayes.families.support import LARGEST_TARGET
from tfbbb.bayes.likelihoods.log_scale import log_moments, moments_beyond
from tfbbb.tables.groups_and_times import merge_copies
from tfbbb.training.likelihood_families import (
    MASSES,
    SIMPLER,
    TWO_MODES,
    family_named,
    fit_family,
    has_two_modes,
)
from tfbbb.training.neighbours import with_neighbours
from tfbbb.training.spec.families import (
    COUNTS,
    DEFAULT_LIKELIHOODS,
    TIMES,
    LikelihoodPart,
    likelihoods,
)

# A sample of this size tells likelihoods apart that differ by some 0.02 nats per row.
MOST_ROWS = 2000
_FEWEST_ROWS = 60
# Another likelihood than the default must be better by this much, in nats per row, and
# by so many standard errors: the default alone can be calibrated by one factor.
_LEAST_GAIN = 0.02
_STANDARD_ERRORS = 2.0
_STEPS_FROM_BOUND = 5
# A share of zeros from which on they may have a probability of their own, and of the
# other targets those that may be near the rounding.
_MANY_ZEROS, _FEW_NEAR = 0.15, 0.05
_FEWEST_GRADES, _MOST_GRADES, _GREATEST_GRADE = 3, 10, 1_000_000
# A step of this part of the standard deviation, or less, makes no modes.
_FINE = 0.02
# The rows are drawn at random, and two modes gain more than other likelihoods.
_ENOUGH_FOR_MODES = 600
# Of targets that vary together.
SEVERAL_TARGETS = likelihoods.make("multivariate_normal", heteroscedastic=True)
# A step of this part of the standard deviation, or less, changes no noise.
_LEAST_STEP = 1e-4
_DECIMALS = range(-6, 7)
# Of targets in single and in double precision.
_RELATIVE_ERROR, _RELATIVE_ERROR_IN_DOUBLE = 2.0**-22, 2.0**-50


@dataclass(frozen=True)
class LikelihoodTrial:
    """A likelihood that was tried, with figures of rows left out in nats per row.

    The gain is that over the default, less what the error of the mean costs.
    """

    likelihood: LikelihoodPart
    log_likelihood: float
    gain: float
    standard_error: float


@dataclass(frozen=True)
class LikelihoodChoice:
    """The likelihood that suits a target, and the compared ones, the default first.

    There are no trials if the target suits no other, or has too few rows to tell.
    """

    likelihood: LikelihoodPart
    trials: tuple[LikelihoodTrial, ...] = ()


def default_likelihood(targets: np.ndarray) -> LikelihoodPart:
    """Returns Student t noise of each row, with the resolution of the targets."""
    part = DEFAULT_LIKELIHOODS["regression"]
    return part.model_copy(update={"resolution": target_resolution(targets)})


def target_resolution(targets: np.ndarray) -> float | None:
    """Returns the greatest step r with `y = y_0 + r * integer` for all targets."""
    values = np.asarray(targets, np.float64).reshape(-1)
    least = _LEAST_STEP * values.std()
    is_single = np.array_equal(values, values.astype(np.float32))
    error = _RELATIVE_ERROR if is_single else _RELATIVE_ERROR_IN_DOUBLE
    for decimals in _DECIMALS:
        step = 10.0**-decimals
        if step < least:
            return None
        numbers = values / step
        whole = np.round(numbers)
        if np.all(np.abs(numbers - whole) <= np.abs(numbers) * error):
            steps = (whole - whole.min()).astype(np.int64)
            step *= float(np.gcd.reduce(steps))
            return step if step > least else None
    return None


def bounds_of_targets(targets: np.ndarray) -> tuple[float, float] | None:
    """Returns the bounds that many targets suggest: 0, and 1 or 100 of shares."""
    low, high = float(np.min(targets)), float(np.max(targets))
    if low < 0.0 or len(targets) < _FEWEST_ROWS:
        return None
    if 0.9 < high <= 1.0 or high == 100.0:
        return 0.0, 1.0 if high <= 1.0 else 100.0
    return 0.0, LARGEST_TARGET


def choose_likelihood(
    inputs: Structure,
    targets: np.ndarray,
    *,
    others: np.ndarray | None = None,
    exposures: np.ndarray | None = None,
    seed: int = 0,
) -> LikelihoodChoice:
    """Chooses the likelihood of numbers by rows that were left out.

    The neighbours of each row in a random forest give its mean and spread; a few
    parameters, common to all rows, give how far the spread is trusted. Student t noise
    is kept unless another likelihood is better by 0.02 nats per row and two standard
    errors. A mixture of two normals is no candidate unless the density of the residuals
    falls between its modes below four fifths of the lower one. A likelihood pays for
    the error of its mean as a normal density does: half the logarithm of the ratio of
    the mean squared errors. Counts with exposures are Poisson, or negative binomial if
    that is better by as much. Of times and events [n, 2] it is the likelier one of
    log-normal and Weibull.
    """
    if np.ndim(targets) == 2 and np.shape(targets)[1] == 2:
        return _choose_for_times(inputs, targets, seed)
    values = np.asarray(targets, np.float64).reshape(-1)
    every = values
    if others is not None:
        every = np.concatenate([values, np.asarray(others, np.float64).reshape(-1)])
    default = default_likelihood(every)
    resolution = default.options()["resolution"]
    names = ["student_t", *_possible(every, resolution)]
    fallback = LikelihoodChoice(default)
    if exposures is not None:
        names, fallback = ["poisson", "negative_binomial"], LikelihoodChoice(COUNTS)
    if len(names) == 1 or values.min() == values.max():
        return fallback
    features = _as_matrix(inputs)
    # A copy of a row would tell its target.
    places, _ = merge_copies(features, values)
    if len(places) < _FEWEST_ROWS:
        return fallback
    if names[1:] == [TWO_MODES]:
        places = places[:_ENOUGH_FOR_MODES]
    if exposures is not None:
        exposures = exposures[places]
    masses = next((MASSES[name] for name in names if name in MASSES), ())
    rows = with_neighbours(
        features[places], values[places], resolution, seed, exposures, masses
    )
    with np.errstate(all="ignore"):
        fitted = {name: fit_family(family_named(name), rows) for name in names}
        found = {
            name: scores
            for name, (parameters, scores) in fitted.items()
            if name != TWO_MODES or has_two_modes(parameters)
        }
    if not all(np.isfinite(scores).all() for scores in found.values()):
        return fallback
    trials = []
    for name, (log_prob, log_errors) in found.items():
        part = default if name == "student_t" else _part(name)
        of_default, errors_of_default = found[names[0]]
        gains = log_prob - of_default - 0.5 * (log_errors - errors_of_default)
        error = float(gains.std() / np.sqrt(len(gains)))
        trials.append(
            LikelihoodTrial(part, float(log_prob.mean()), float(gains.mean()), error)
        )
    return LikelihoodChoice(_best(trials).likelihood, tuple(trials))


def _choose_for_times(
    inputs: Structure, targets: np.ndarray, seed: int
) -> LikelihoodChoice:
    """Chooses by rows that a forest left out: its prediction moves the location."""
    logs, happened = np.log(targets[:, 0].astype(np.float64)), targets[:, 1] == 1.0
    if len(logs) < _FEWEST_ROWS or not happened.any() or logs.min() == logs.max():
        return LikelihoodChoice(TIMES)
    location, scale = log_moments(logs, happened)
    expected, _ = moments_beyond(logs, happened, location, scale)
    left_out = with_neighbours(_as_matrix(inputs), expected, None, seed).mean
    found = {name: _fit_times(name, logs, happened, left_out) for name in _OF_TIMES}
    best = max(found, key=lambda name: found[name].mean())
    trials = []
    for name, log_prob in found.items():
        gains = log_prob - found["weibull"]
        error = float(gains.std() / np.sqrt(len(gains)))
        part = likelihoods.make(name)
        of_rows = float(log_prob.mean()), float(gains.mean())
        trials.append(LikelihoodTrial(part, *of_rows, error))
    return LikelihoodChoice(likelihoods.make(best), tuple(trials))


def _fit_times(
    name: str, logs: np.ndarray, happened: np.ndarray, means: np.ndarray
) -> np.ndarray:
    """Returns log likelihoods [n] of times, with the best line of means and scale."""
    noise = _OF_TIMES[name]
    centred = means - means.mean()

    def log_prob(parameters: np.ndarray) -> np.ndarray:
        shift, slope, log_scale = parameters
        found = noise(logs.mean() + shift + slope * centred, np.exp(log_scale))
        return np.where(happened, found.logpdf(logs), found.logsf(logs))

    fitted = scipy.optimize.minimize(
        lambda parameters: -np.mean(log_prob(parameters)),
        (0.0, 1.0, np.log(logs.std())),
        method="L-BFGS-B",
        bounds=((-10.0, 10.0), (-3.0, 3.0), (-8.0, 4.0)),
    )
    return log_prob(fitted.x)


def _possible(values: np.ndarray, resolution: float | None) -> list[str]:
    """Returns the names of the likelihoods, besides the default, that targets suit."""
    names = ["poisson", "negative_binomial"] if resolution == 1.0 else []
    grades = np.unique(values)
    if resolution == 1.0 and _FEWEST_GRADES <= len(grades) <= _MOST_GRADES:
        low, high = int(grades[0]), int(grades[-1])
        # Otherwise a grade is missing.
        if len(grades) == high - low + 1 and low >= 0 and high <= _GREATEST_GRADE:
            names.append(f"grades {low} {high}")
    # The others know no rounding, which must be small beside the least target.
    step = _STEPS_FROM_BOUND * (resolution or 0.0)
    if values.min() > step:
        names += ["log_normal", "gamma"]
        if values.max() < 1.0 - step:
            names.append("beta")
    of_many = _possible_with_masses(values, step)
    if not of_many and (resolution or 0.0) <= _FINE * values.std():
        names.append(TWO_MODES)
    names += of_many
    supports = {name: _part(name).support for name in names}
    return [
        name
        for name, support in supports.items()
        if support is not None and support.contains(values).all()
    ]


def _possible_with_masses(values: np.ndarray, step: float) -> list[str]:
    """Returns the names of likelihoods that suit targets of which many are equal."""
    low, high = values.min(), values.max()
    inside = values[(values > 0.0) & (values < 1.0)]
    if low >= 0.0 and high <= 1.0 and 0 < len(inside) < len(values):
        near, far = np.quantile(inside, [_FEW_NEAR, 1.0 - _FEW_NEAR])
        return ["inflated_beta"] if near > step and far < 1.0 - step else []
    if low != 0.0 or high == 0.0 or np.mean(values == 0.0) <= _MANY_ZEROS:
        return []
    if np.quantile(values[values > 0.0], _FEW_NEAR) > step:
        return ["zero_inflated log_normal", "zero_inflated gamma"]
    # Only of counts, as the supports tell.
    return ["zero_inflated negative_binomial"]


def _part(label: str) -> LikelihoodPart:
    name, _, base = label.partition(" ")
    if name == "grades":
        low, high = map(int, base.split())
        return likelihoods.make(name, low=low, high=high)
    plain = name in ("poisson", TWO_MODES)
    options: Config = {} if plain else {"heteroscedastic": True}
    return likelihoods.make(name, **options, **({"base": base} if base else {}))


def _best(trials: list[LikelihoodTrial]) -> LikelihoodTrial:
    """Returns the trial with the greatest gain, the default if none is clear."""
    clear = [
        trial
        for trial in trials[1:]
        if trial.gain > max(_LEAST_GAIN, _STANDARD_ERRORS * trial.standard_error)
    ]
    if not clear:
        return trials[0]
    best = max(clear, key=lambda trial: trial.gain)
    for simpler in SIMPLER.get(best.likelihood.label, ()):
        for trial in clear:
            near = best.gain - trial.gain < _LEAST_GAIN
            if trial.likelihood.label == simpler and near:
                return trial
    return best


def _as_matrix(inputs: Structure) -> np.ndarray:
    """Returns numbers [n, d]; texts become numbers in their order."""
    columns = inputs.values() if isinstance(inputs, dict) else [inputs]
    parts = []
    for column in map(np.asarray, columns):
        if column.dtype.kind in "OSU":
            # Texts of tensors are bytes.
            column = np.unique(column, return_inverse=True)[1]
        elif column.dtype == np.float64:
            # Forests take single precision.
            column = column - np.nanmean(column, axis=0)
        parts.append(column.reshape(len(column), -1).astype(np.float32))
    return np.concatenate(parts, axis=1)


# Noise of the logarithm of a time.
_OF_TIMES = {"weibull": stats.gumbel_l, "log_normal": stats.norm}
