"""Chooses the likelihood that suits a target, before any network is trained."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from scipy import special, stats

from tfbbb.base.types import Config, Structure
from tfbbb.bayes.families.support import LARGEST_TARGET
from tfbbb.bayes.likelihoods.log_scale import log_moments, moments_beyond
from tfbbb.tables.groups_and_times import merge_copies
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
_FEWEST_GRADES, _MOST_GRADES = 3, 10
# A step of this part of the standard deviation, or less, makes no modes.
_FINE = 0.02
# Of the density between two modes over the lower one, and where it is computed.
_VALLEY, _PLACES = 0.8, 200
_TWO_MODES = "normal_mixture"
# The rows are drawn at random, and two modes gain more than other likelihoods.
_ENOUGH_FOR_MODES = 600
_FOLDS, _TREES, _ROWS_PER_LEAF, _MOST_FEATURES_PER_SPLIT = 3, 50, 5, 30
_LEAST_PROBABILITY = _TINY = 1e-300
# Of targets in standard units.
_LEAST_VARIANCE = 1e-8
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


@dataclass(frozen=True)
class _Rows:
    """Targets [n] that were left out, with the moments of their neighbours' targets.

    A neighbour is a training row of a random forest in the same leaf of one of its
    trees (Meinshausen 2006); the forest did not see these targets. `share` is the sum
    of the squared weights of the neighbours, and `average` the mean of a target of
    which nothing is known, [n]. Of counts with exposures, both are rates times these.

    Some targets, the `masses`, have a probability of their own: of those of the
    neighbours, [n, masses]; then `inside` has the moments of the other neighbours.
    """

    targets: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    log_mean: np.ndarray
    log_variance: np.ndarray
    share: np.ndarray
    resolution: float | None
    average: np.ndarray
    masses: tuple[float, ...] = ()
    probabilities: np.ndarray | None = None
    inside: "_Rows | None" = None


@dataclass(frozen=True)
class _Family:
    """A likelihood whose parameters are common to all rows: distributions of SciPy."""

    start: tuple[float, ...]
    bounds: tuple[tuple[float, float], ...]
    distribution: Callable[[np.ndarray, _Rows], Any]
    discrete: bool = False

    def log_prob(self, parameters: np.ndarray, rows: _Rows) -> np.ndarray:
        """Returns log densities, or log probabilities of rounded targets, [n].

        A target with a probability of its own, at an end, has that of all beyond it.
        """
        found, targets = self.distribution(parameters, rows), rows.targets
        if self.discrete:
            return np.asarray(found.logpmf(targets))
        half = 0.5 * (rows.resolution or 0.0)
        below, above = targets - half, targets + half
        if rows.resolution is None:
            log_prob = np.asarray(found.logpdf(targets))
        else:
            # The smaller tail has the digits.
            probability = np.where(
                targets > found.mean(),
                found.sf(below) - found.sf(above),
                found.cdf(above) - found.cdf(below),
            )
            log_prob = np.log(np.maximum(probability, _LEAST_PROBABILITY))
        for place, value in enumerate(rows.masses):
            beyond = found.logsf(below) if place else found.logcdf(above)
            log_prob = np.where(targets == value, beyond, log_prob)
        return log_prob

    def mean(self, parameters: np.ndarray, rows: _Rows) -> np.ndarray:
        """Returns the means of all rows, [n]."""
        return np.asarray(self.distribution(parameters, rows).mean())


class _Inflated:
    """A family beside the probabilities that neighbours give the `masses`."""

    def __init__(self, base: _Family):
        self.base = base
        self.start, self.bounds = (0.0, *base.start), (_WEIGHT, *base.bounds)

    def _probabilities(self, parameters: np.ndarray, rows: _Rows) -> np.ndarray:
        """Returns those of the masses, and of the rest, [n, masses + 1]."""
        assert rows.probabilities is not None
        common = np.stack([rows.targets == value for value in rows.masses], axis=1)
        weight = (rows.share * np.exp(parameters[0]))[:, np.newaxis]
        found = (rows.probabilities + weight * common.mean(axis=0)) / (1.0 + weight)
        return np.append(found, 1.0 - found.sum(axis=1, keepdims=True), axis=1)

    def log_prob(self, parameters: np.ndarray, rows: _Rows) -> np.ndarray:
        logs = np.log(np.maximum(self._probabilities(parameters, rows), _TINY))
        assert rows.inside is not None
        found = logs[:, -1] + self.base.log_prob(parameters[1:], rows.inside)
        for place, value in enumerate(rows.masses):
            found = np.where(rows.targets == value, logs[:, place], found)
        return found

    def mean(self, parameters: np.ndarray, rows: _Rows) -> np.ndarray:
        found = self._probabilities(parameters, rows)
        assert rows.inside is not None
        rest = found[:, -1] * self.base.mean(parameters[1:], rows.inside)
        return rest + found[:, :-1] @ np.array(rows.masses)


class _Grades:
    """Ordered grades [C], whose logistic variable is around the mean of a row."""

    def __init__(self, grades: np.ndarray):
        self.grades = grades
        self.start = (1.0, *np.linspace(-1.0, 1.0, len(grades) - 1))
        self.bounds = ((0.0, 10.0), *[(-20.0, 20.0)] * (len(grades) - 1))

    def _probabilities(self, parameters: np.ndarray, rows: _Rows) -> np.ndarray:
        slope, *cutpoints = parameters
        location = slope * (rows.mean - rows.mean.mean()) / (rows.mean.std() + _TINY)
        below = special.expit(np.sort(cutpoints) - location[:, np.newaxis])
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def log_prob(self, parameters: np.ndarray, rows: _Rows) -> np.ndarray:
        places = (rows.targets - self.grades[0]).astype(int)
        found = self._probabilities(parameters, rows)[np.arange(len(places)), places]
        return np.log(np.maximum(found, _TINY))

    def mean(self, parameters: np.ndarray, rows: _Rows) -> np.ndarray:
        return np.asarray(self._probabilities(parameters, rows) @ self.grades)


class _ZeroInflatedCounts:
    """A family of counts with further zeros, of one probability for all rows."""

    def __init__(self, base: _Family):
        self.base = base
        self.start, self.bounds = (-2.0, *base.start), (_LOGIT, *base.bounds)

    def _of_rest(self, parameters: np.ndarray, rows: _Rows) -> tuple[float, _Rows]:
        rest = float(special.expit(-parameters[0]))
        return rest, replace(rows, mean=rows.mean / rest, average=rows.average / rest)

    def log_prob(self, parameters: np.ndarray, rows: _Rows) -> np.ndarray:
        rest, inflated = self._of_rest(parameters, rows)
        found = np.log(rest) + self.base.log_prob(parameters[1:], inflated)
        with_zeros = np.logaddexp(found, special.log_expit(parameters[0]))
        return np.where(rows.targets == 0.0, with_zeros, found)

    def mean(self, parameters: np.ndarray, rows: _Rows) -> np.ndarray:
        rest, inflated = self._of_rest(parameters, rows)
        return rest * self.base.mean(parameters[1:], inflated)


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
    """Returns the bounds that targets suggest: 0, and 1 or 100 of shares.

    Of many numbers, some near 0 would be negative if a number could be. A share of 1
    is nearly reached, and one of 100 % reached.
    """
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
    if names[1:] == [_TWO_MODES]:
        places = places[:_ENOUGH_FOR_MODES]
    if exposures is not None:
        exposures = exposures[places]
    masses = next((_MASSES[name] for name in names if name in _MASSES), ())
    rows = _with_neighbours(
        features[places], values[places], resolution, seed, exposures, masses
    )
    with np.errstate(all="ignore"):
        fitted = {name: _fit(_family(name), rows) for name in names}
        found = {
            name: scores
            for name, (parameters, scores) in fitted.items()
            if name != _TWO_MODES or _has_two_modes(parameters)
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
    left_out = _with_neighbours(_as_matrix(inputs), expected, None, seed).mean
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
        if len(grades) == high - low + 1:
            names.append(f"grades {low} {high}")
    # The others know no rounding, which must be small beside the least target.
    step = _STEPS_FROM_BOUND * (resolution or 0.0)
    if values.min() > step:
        names += ["log_normal", "gamma"]
        if values.max() < 1.0 - step:
            names.append("beta")
    of_many = _possible_with_masses(values, step)
    if not of_many and (resolution or 0.0) <= _FINE * values.std():
        names.append(_TWO_MODES)
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
    if low != 0.0 or np.mean(values == 0.0) <= _MANY_ZEROS:
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
    plain = name in ("poisson", _TWO_MODES)
    options: Config = {} if plain else {"heteroscedastic": True}
    return likelihoods.make(name, **options, **({"base": base} if base else {}))


def _family(label: str) -> Any:
    if label in _FAMILIES:
        return _FAMILIES[label]
    low, high = map(int, label.split()[1:])
    return _Grades(np.arange(low, high + 1))


def _best(trials: list[LikelihoodTrial]) -> LikelihoodTrial:
    """Returns the trial with the greatest gain, the default if none is clear.

    A simpler distribution of counts is kept if it is about as good.
    """
    clear = [
        trial
        for trial in trials[1:]
        if trial.gain > max(_LEAST_GAIN, _STANDARD_ERRORS * trial.standard_error)
    ]
    if not clear:
        return trials[0]
    best = max(clear, key=lambda trial: trial.gain)
    for simpler in _SIMPLER.get(best.likelihood.label, ()):
        for trial in clear:
            near = best.gain - trial.gain < _LEAST_GAIN
            if trial.likelihood.label == simpler and near:
                return trial
    return best


def _fit(family: Any, rows: _Rows) -> tuple[np.ndarray, np.ndarray]:
    """Returns parameters, and log-likelihood and log squared error of rows, [2, n].

    The mean of the latter is the logarithm of the mean squared error, and their spread
    is that of this logarithm, by the delta method.
    """

    def loss(parameters: np.ndarray) -> float:
        found = -np.mean(family.log_prob(parameters, rows))
        return float(found) if np.isfinite(found) else 1e10

    fitted = scipy.optimize.minimize(
        loss, family.start, method="L-BFGS-B", bounds=family.bounds
    )
    # No network has a mean far beyond the greatest target.
    means = family.mean(fitted.x, rows)
    means = np.minimum(means, 2.0 * np.abs(rows.targets).max())
    errors = np.square(rows.targets - means)
    mean = max(float(errors.mean()), _TINY)
    scores = [family.log_prob(fitted.x, rows), np.log(mean) + errors / mean - 1.0]
    return fitted.x, np.stack(scores)


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


def _with_neighbours(
    features: np.ndarray,
    targets: np.ndarray,
    resolution: float | None,
    seed: int,
    exposures: np.ndarray | None = None,
    masses: tuple[float, ...] = (),
) -> _Rows:
    # scikit-learn takes a second to import.
    from sklearn.ensemble import RandomForestRegressor

    size = np.ones(len(targets)) if exposures is None else exposures
    scores = normal_scores(targets / size)
    is_mass = targets[:, np.newaxis] == np.array(masses)
    logs = np.log(np.where(targets > 0.0, targets, 1.0))
    every = _Columns.of(targets, logs, np.ones(len(targets), bool))
    inside = _Columns.of(targets, logs, ~is_mass.any(axis=1))
    columns = [every.powers, inside.powers, is_mass, size[:, np.newaxis]]
    columns = np.concatenate(columns, axis=1)
    averages, share = np.empty_like(columns), np.empty(len(columns))
    folds = np.random.default_rng(seed).permutation(len(columns)) % _FOLDS
    for fold in range(_FOLDS):
        train, left_out = folds != fold, folds == fold
        forest = RandomForestRegressor(
            _TREES,
            min_samples_leaf=_ROWS_PER_LEAF,
            max_features=min(features.shape[1], _MOST_FEATURES_PER_SPLIT),
            random_state=seed,
        ).fit(features[train], scores[train], size[train])
        weights = _neighbour_weights(
            forest.apply(features[left_out]), forest.apply(features[train])
        )
        averages[left_out] = weights @ columns[train]
        share[left_out] = np.asarray(weights.power(2).sum(axis=1)).ravel()
    of_all, of_inside, probabilities, of_size = np.split(averages, [4, 8, -1], axis=1)
    mean, *moments = every.moments(of_all, share)
    if exposures is not None:
        mean *= size / of_size[:, 0]
    average = targets.sum() / size.sum() * size
    rows = _Rows(targets, mean, *moments, share, resolution, average)
    if not masses:
        return rows
    # Neighbours of which hardly any is inside say as little as a row more would.
    weight = 1.0 - probabilities.sum(axis=1) + share
    of_inside[:, 2:] += share[:, np.newaxis]
    of_inside, share = of_inside / weight[:, np.newaxis], share / weight
    found = inside.moments(of_inside, share)
    others = _Rows(targets, *found, share, resolution, average)
    return replace(rows, masses=masses, probabilities=probabilities, inside=others)


@dataclass(frozen=True)
class _Columns:
    """Targets and their logs in standard units, and the squares, [n, 4].

    They are 0 in the rows of other targets than those that the units are of.
    """

    powers: np.ndarray
    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, targets: np.ndarray, logs: np.ndarray, rows: np.ndarray) -> "_Columns":
        values = np.stack([targets, logs], axis=1)
        shift = values[rows].mean(axis=0)
        scale = values[rows].std(axis=0) + _TINY
        units = np.where(rows[:, np.newaxis], (values - shift) / scale, 0.0)
        return cls(np.append(units, np.square(units), axis=1), shift, scale)

    def moments(self, averages: np.ndarray, share: np.ndarray) -> tuple[Any, ...]:
        """Returns mean, variance, mean of logs and their variance, [n] each."""
        first, second = averages[:, :2], averages[:, 2:]
        variance = (second - np.square(first)) / (1.0 - share[:, np.newaxis])
        mean = self.shift + self.scale * first
        variance = np.square(self.scale) * np.maximum(variance, _LEAST_VARIANCE)
        return mean[:, 0], variance[:, 0], mean[:, 1], variance[:, 1]


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Returns normal quantiles at the mean ranks of values, [n]."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - 0.5 * (counts - 1)
    return special.ndtri(ranks[places] / (len(values) + 1.0))


def _neighbour_weights(of_rows: np.ndarray, of_others: np.ndarray) -> Any:
    """Returns the weight of each of m other rows for each of n rows, sparse [n, m]."""
    from sklearn.preprocessing import OneHotEncoder

    leaves = OneHotEncoder().fit(of_others)
    others = leaves.transform(of_others)
    sizes = np.asarray(others.sum(axis=0)).ravel()
    per_leaf = scipy.sparse.diags_array(1.0 / (of_rows.shape[1] * sizes))
    return leaves.transform(of_rows) @ per_leaf @ others.T


def _spread(variance: np.ndarray, trust: float) -> np.ndarray:
    """Returns variances between a common one (`trust` 0) and those given (1)."""
    logs = np.log(variance)
    centre = logs.mean()
    return np.exp(centre + trust * (logs - centre))


def _student_t(parameters: np.ndarray, rows: _Rows) -> Any:
    factor, trust, shift, log_df = parameters
    variance = np.exp(factor) * _spread(rows.variance, trust)
    if rows.resolution is not None:
        variance = variance + rows.resolution**2 / 12.0
    location = rows.mean + shift * np.sqrt(rows.variance)
    return stats.t(2.0 + np.exp(log_df), location, np.sqrt(variance))


def _log_normal(parameters: np.ndarray, rows: _Rows) -> Any:
    factor, trust = parameters
    variance = np.exp(factor) * _spread(rows.log_variance, trust)
    return stats.lognorm(np.sqrt(variance), scale=np.exp(rows.log_mean))


def _gamma(parameters: np.ndarray, rows: _Rows) -> Any:
    factor, trust = parameters
    variation = np.exp(factor) * _spread(rows.variance / rows.mean**2, trust)
    return stats.gamma(1.0 / variation, scale=variation * rows.mean)


def _beta(parameters: np.ndarray, rows: _Rows) -> Any:
    factor, trust = parameters
    binomial = rows.mean * (1.0 - rows.mean)
    # Var[y] = m (1 - m) / (1 + c): its share of the binomial variance is below 1.
    share = np.clip(rows.variance / binomial, 1e-9, 1.0 - 1e-9)
    odds = np.exp(factor) * _spread(share / (1.0 - share), trust)
    return stats.beta(rows.mean / odds, (1.0 - rows.mean) / odds)


class _TwoNormals:
    """Mixtures of two normals, as a distribution of SciPy."""

    def __init__(self, weight: float, locations: np.ndarray, scales: np.ndarray):
        self.weights = np.array([weight, 1.0 - weight])
        self.locations, self.scales = locations, scales

    def _average(self, values: np.ndarray) -> Any:
        return values @ self.weights

    def _standardized(self, values: np.ndarray) -> np.ndarray:
        return (values[..., np.newaxis] - self.locations) / self.scales

    def logpdf(self, values: np.ndarray) -> Any:
        logs = -0.5 * np.square(self._standardized(values)) - np.log(self.scales)
        normal = 0.5 * np.log(2.0 * np.pi)
        return special.logsumexp(logs, b=self.weights, axis=-1) - normal

    def cdf(self, values: np.ndarray) -> Any:
        return self._average(special.ndtr(self._standardized(values)))

    def sf(self, values: np.ndarray) -> Any:
        return self._average(special.ndtr(-self._standardized(values)))

    def mean(self) -> Any:
        return self._average(self.locations)


def _two_normals(parameters: np.ndarray, rows: _Rows) -> _TwoNormals:
    *form, trust = parameters
    of_units, unit = _form(form), np.sqrt(_spread(rows.variance, trust))
    return _TwoNormals(
        of_units.weights[0],
        rows.mean[:, np.newaxis] + unit[:, np.newaxis] * of_units.locations,
        unit[:, np.newaxis] * of_units.scales,
    )


def _form(parameters: Sequence[float]) -> _TwoNormals:
    """Returns the distribution of residuals in units of their spread."""
    logit, first, distance, *log_scales = parameters
    return _TwoNormals(
        float(special.expit(logit)),
        np.array([first, first + distance]),
        np.exp(log_scales),
    )


def _has_two_modes(parameters: np.ndarray) -> bool:
    """Returns whether the density of residuals has a valley between its two normals."""
    form = _form(parameters[:-1])
    density = np.exp(form.logpdf(np.linspace(*form.locations, _PLACES)))
    return bool(density.min() < _VALLEY * min(density[0], density[-1]))


def _rate(parameters: np.ndarray, rows: _Rows) -> np.ndarray:
    """Returns the mean of counts: neighbours that are all 0 say little."""
    weight = rows.share * np.exp(parameters[0])
    return (rows.mean + weight * rows.average) / (1.0 + weight)


def _poisson(parameters: np.ndarray, rows: _Rows) -> Any:
    return stats.poisson(_rate(parameters, rows))


def _negative_binomial(parameters: np.ndarray, rows: _Rows) -> Any:
    _, log_dispersion, power = parameters
    mean = _rate(parameters, rows)
    concentration = np.exp(-log_dispersion) * mean**power
    return stats.nbinom(concentration, concentration / (concentration + mean))


# Noise of the logarithm of a time.
_OF_TIMES = {"weibull": stats.gumbel_l, "log_normal": stats.norm}
_FACTOR, _TRUST, _WEIGHT = (-8.0, 4.0), (0.0, 1.5), (-4.0, 4.0)
_LOGIT, _LOG_SCALE = (-8.0, 8.0), (-5.0, 1.0)
_FAMILIES: dict[str, Any] = {
    "student_t": _Family(
        (0.0, 0.5, 0.0, 1.5), (_FACTOR, _TRUST, (-1.0, 1.0), (-3.0, 8.0)), _student_t
    ),
    "poisson": _Family((0.0,), (_WEIGHT,), _poisson, discrete=True),
    "negative_binomial": _Family(
        (0.0, -1.0, 0.0),
        (_WEIGHT, (-9.0, 4.0), (-1.0, 2.0)),
        _negative_binomial,
        discrete=True,
    ),
    "log_normal": _Family((0.0, 0.5), (_FACTOR, _TRUST), _log_normal),
    "gamma": _Family((0.0, 0.5), (_FACTOR, _TRUST), _gamma),
    "beta": _Family((0.0, 0.5), (_FACTOR, _TRUST), _beta),
}
_FAMILIES |= {
    _TWO_MODES: _Family(
        (0.0, -0.8, 1.6, -0.7, -0.7, 0.5),
        ((-2.5, 2.5), (-4.0, 1.0), (0.0, 6.0), _LOG_SCALE, _LOG_SCALE, _TRUST),
        _two_normals,
    ),
    "inflated_beta": _Inflated(_FAMILIES["beta"]),
    "zero_inflated gamma": _Inflated(_FAMILIES["gamma"]),
    "zero_inflated log_normal": _Inflated(_FAMILIES["log_normal"]),
    "zero_inflated negative_binomial": _ZeroInflatedCounts(
        _FAMILIES["negative_binomial"]
    ),
}
# The targets that have a probability of their own.
_MASSES = {
    "inflated_beta": (0.0, 1.0),
    "zero_inflated gamma": (0.0,),
    "zero_inflated log_normal": (0.0,),
}
# What is kept if it is about as good, the simplest first.
_SIMPLER = {
    "negative_binomial": ("poisson",),
    "zero_inflated negative_binomial": ("poisson", "negative_binomial"),
}
