"""Likelihoods whose few parameters are common to all rows, by moments of neighbours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
from scipy import special, stats

from tfbbb.training.neighbours import TINY, Rows

TWO_MODES = "normal_mixture"
# Of the density between two modes over the lower one, and where it is computed.
_VALLEY, _PLACES = 0.8, 200
_LEAST_PROBABILITY = 1e-300


@dataclass(frozen=True)
class _Family:
    """A likelihood whose parameters are common to all rows: distributions of SciPy."""

    start: tuple[float, ...]
    bounds: tuple[tuple[float, float], ...]
    distribution: Callable[[np.ndarray, Rows], Any]
    discrete: bool = False

    def log_prob(self, parameters: np.ndarray, rows: Rows) -> np.ndarray:
        """Returns log densities, or log probabilities of rounded targets, [n]."""
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
        # A target at an end has the probability of all beyond it.
        for place, value in enumerate(rows.masses):
            beyond = found.logsf(below) if place else found.logcdf(above)
            log_prob = np.where(targets == value, beyond, log_prob)
        return log_prob

    def mean(self, parameters: np.ndarray, rows: Rows) -> np.ndarray:
        """Returns the means of all rows, [n]."""
        return np.asarray(self.distribution(parameters, rows).mean())


class _Inflated:
    """A family beside the probabilities that neighbours give the `masses`."""

    def __init__(self, base: _Family):
        self.base = base
        self.start, self.bounds = (0.0, *base.start), (_WEIGHT, *base.bounds)

    def _probabilities(self, parameters: np.ndarray, rows: Rows) -> np.ndarray:
        """Returns those of the masses, and of the rest, [n, masses + 1]."""
        assert rows.probabilities is not None
        common = np.stack([rows.targets == value for value in rows.masses], axis=1)
        weight = (rows.share * np.exp(parameters[0]))[:, np.newaxis]
        found = (rows.probabilities + weight * common.mean(axis=0)) / (1.0 + weight)
        return np.append(found, 1.0 - found.sum(axis=1, keepdims=True), axis=1)

    def log_prob(self, parameters: np.ndarray, rows: Rows) -> np.ndarray:
        logs = np.log(np.maximum(self._probabilities(parameters, rows), TINY))
        assert rows.inside is not None
        found = logs[:, -1] + self.base.log_prob(parameters[1:], rows.inside)
        for place, value in enumerate(rows.masses):
            found = np.where(rows.targets == value, logs[:, place], found)
        return found

    def mean(self, parameters: np.ndarray, rows: Rows) -> np.ndarray:
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

    def _probabilities(self, parameters: np.ndarray, rows: Rows) -> np.ndarray:
        slope, *cutpoints = parameters
        location = slope * (rows.mean - rows.mean.mean()) / (rows.mean.std() + TINY)
        below = special.expit(np.sort(cutpoints) - location[:, np.newaxis])
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def log_prob(self, parameters: np.ndarray, rows: Rows) -> np.ndarray:
        places = (rows.targets - self.grades[0]).astype(int)
        found = self._probabilities(parameters, rows)[np.arange(len(places)), places]
        return np.log(np.maximum(found, TINY))

    def mean(self, parameters: np.ndarray, rows: Rows) -> np.ndarray:
        return np.asarray(self._probabilities(parameters, rows) @ self.grades)


class _ZeroInflatedCounts:
    """A family of counts with further zeros, of one probability for all rows."""

    def __init__(self, base: _Family):
        self.base = base
        self.start, self.bounds = (-2.0, *base.start), (_LOGIT, *base.bounds)

    def _of_rest(self, parameters: np.ndarray, rows: Rows) -> tuple[float, Rows]:
        rest = float(special.expit(-parameters[0]))
        return rest, replace(rows, mean=rows.mean / rest, average=rows.average / rest)

    def log_prob(self, parameters: np.ndarray, rows: Rows) -> np.ndarray:
        rest, inflated = self._of_rest(parameters, rows)
        found = np.log(rest) + self.base.log_prob(parameters[1:], inflated)
        with_zeros = np.logaddexp(found, special.log_expit(parameters[0]))
        return np.where(rows.targets == 0.0, with_zeros, found)

    def mean(self, parameters: np.ndarray, rows: Rows) -> np.ndarray:
        rest, inflated = self._of_rest(parameters, rows)
        return rest * self.base.mean(parameters[1:], inflated)


def fit_family(family: Any, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Returns parameters, and log-likelihood and log squared error of rows, [2, n]."""

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
    # Their mean is the log of the mean squared error, their spread its, by the delta
    # method.
    mean = max(float(errors.mean()), TINY)
    scores = [family.log_prob(fitted.x, rows), np.log(mean) + errors / mean - 1.0]
    return fitted.x, np.stack(scores)


def _spread(variance: np.ndarray, trust: float) -> np.ndarray:
    """Returns variances between a common one (`trust` 0) and those given (1)."""
    logs = np.log(variance)
    centre = logs.mean()
    return np.exp(centre + trust * (logs - centre))


def _student_t(parameters: np.ndarray, rows: Rows) -> Any:
    factor, trust, shift, log_df = parameters
    variance = np.exp(factor) * _spread(rows.variance, trust)
    if rows.resolution is not None:
        variance = variance + rows.resolution**2 / 12.0
    location = rows.mean + shift * np.sqrt(rows.variance)
    return stats.t(2.0 + np.exp(log_df), location, np.sqrt(variance))


def _log_normal(parameters: np.ndarray, rows: Rows) -> Any:
    factor, trust = parameters
    variance = np.exp(factor) * _spread(rows.log_variance, trust)
    return stats.lognorm(np.sqrt(variance), scale=np.exp(rows.log_mean))


def _gamma(parameters: np.ndarray, rows: Rows) -> Any:
    factor, trust = parameters
    variation = np.exp(factor) * _spread(rows.variance / rows.mean**2, trust)
    return stats.gamma(1.0 / variation, scale=variation * rows.mean)


def _beta(parameters: np.ndarray, rows: Rows) -> Any:
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


def _two_normals(parameters: np.ndarray, rows: Rows) -> _TwoNormals:
    *form, trust = parameters
    of_units, unit = _form(form), np.sqrt(_spread(rows.variance, trust))
    return _TwoNormals(
        of_units.weights[0],
        rows.mean[:, np.newaxis] + unit[:, np.newaxis] * of_units.locations,
        unit[:, np.newaxis] * of_units.scales,
    )


def _form(parameters: Sequence[float] | np.ndarray) -> _TwoNormals:
    """Returns the distribution of residuals in units of their spread."""
    logit, first, distance, *log_scales = parameters
    return _TwoNormals(
        float(special.expit(logit)),
        np.array([first, first + distance]),
        np.exp(log_scales),
    )


def has_two_modes(parameters: np.ndarray) -> bool:
    """Returns whether the density of residuals has a valley between its two normals."""
    form = _form(parameters[:-1])
    first, last = form.locations
    density = np.exp(form.logpdf(np.linspace(first, last, _PLACES)))
    return bool(density.min() < _VALLEY * min(density[0], density[-1]))


def _rate(parameters: np.ndarray, rows: Rows) -> np.ndarray:
    """Returns the mean of counts: neighbours that are all 0 say little."""
    weight = rows.share * np.exp(parameters[0])
    return (rows.mean + weight * rows.average) / (1.0 + weight)


def _poisson(parameters: np.ndarray, rows: Rows) -> Any:
    return stats.poisson(_rate(parameters, rows))


def _negative_binomial(parameters: np.ndarray, rows: Rows) -> Any:
    _, log_dispersion, power = parameters
    mean = _rate(parameters, rows)
    concentration = np.exp(-log_dispersion) * mean**power
    return stats.nbinom(concentration, concentration / (concentration + mean))


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
    TWO_MODES: _Family(
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
MASSES = {
    "inflated_beta": (0.0, 1.0),
    "zero_inflated gamma": (0.0,),
    "zero_inflated log_normal": (0.0,),
}
# What is kept if it is about as good, the simplest first.
SIMPLER = {
    "negative_binomial": ("poisson",),
    "zero_inflated negative_binomial": ("poisson", "negative_binomial"),
}


def family_named(label: str) -> Any:
    """Returns the family of a likelihood's label; of grades with both ends."""
    if label in _FAMILIES:
        return _FAMILIES[label]
    low, high = map(int, label.split()[1:])
    return _Grades(np.arange(low, high + 1))
