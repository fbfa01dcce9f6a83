"""The likelihoods of counts."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import ArrayLike, DType, Tensor
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.families.support import LARGEST_COUNT, Support
from tfbbb.bayes.likelihoods import count_distribution
from tfbbb.bayes.likelihoods.inversion import bracket_of_counts, least_integer
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.log_link import LogLink
from tfbbb.bayes.likelihoods.regression import (
    Heteroscedastic,
    Standardize,
    checked_exposures,
    soft_limit,
)

# Largest value at which a distribution function is evaluated.
_LARGEST_VALUE = 1e100


class Counts(LogLink):
    """Whole numbers y >= 0, k of them in a row, with a mean by the log link.

        log mean = log(average) + f

    where f is an output of the network and `average` is the mean of the training
    targets, set by the first `fit` and 1 until then. The training targets bound the log
    mean: see `LogLink`. Distribution function, quantiles and samples are in float64.

    With `exposure=True` the last output is the exposure e of the row, what the count is
    counted in: person-days, kilometres, insured years. `tfbbb.layers.Exposure` appends
    it to the other outputs. The mean is proportional to it,

        mean = e * average * exp(f)

    and `average` is the sum of the training targets over that of their exposures. The
    bounds, and a concentration, are those of a row with the mean exposure.

    Args:
        standardize: Whether the network gives the log of the mean relative to
            `average`; else it gives the log of the mean itself.
        exposure: Whether the last output is the exposure of the row.
    """

    support = Support(0.0, LARGEST_COUNT, integer=True)
    takes_exposure = True
    # Single precision has no smaller positive number.
    _widest_range = (-100.0, math.log(LARGEST_COUNT))

    def __init__(self, exposure: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.exposure = exposure

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        super().build(output_shape)
        if self.exposure:
            self.mean_exposure = self._variable("mean_exposure", (), 1.0)

    def _output_sizes(self, num_targets: int) -> dict[str, int]:
        sizes = super()._output_sizes(num_targets)
        return {**sizes, "exposure": 1} if self.exposure else sizes

    def _shift_and_scale(
        self, values: np.ndarray, exposures: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns log of mean and, in its units, standard deviation, [k] each.

        With exposures [n, 1] the mean is that of one unit, and the deviation that of
        rows of the mean exposure.
        """
        mean = values.mean(axis=0)
        if not mean.all():
            raise ValueError(
                f"Target {int(np.argmin(mean))} is 0 in every row, so there is nothing "
                "to learn; leave it out. "
                f"Received: {len(values)} rows of zeros"
            )
        if exposures is None:
            return np.log(mean), values.std(axis=0) / mean
        self.mean_exposure.assign(exposures.mean())
        expected = mean * exposures / exposures.mean()
        excess = np.sum(np.square(values - expected) - expected, axis=0)
        dispersion = np.maximum(excess / np.sum(np.square(expected), axis=0), 0.0)
        return np.log(mean / exposures.mean()), np.sqrt(dispersion + 1.0 / mean)

    def _range(
        self, values: np.ndarray, exposures: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        if exposures is None:
            return super()._range(values)
        relative = exposures / self.mean_exposure.numpy()
        mean = values.sum(axis=0) / relative.sum()
        # One more event at the mean rate: that of a short exposure is chance.
        rates = (values + 1.0) / (relative + 1.0 / mean)
        one_event = np.full_like(mean, 1.0 / relative.sum())
        return super()._range(np.vstack([rates, one_event]))

    def locations(
        self, targets: ArrayLike, exposures: ArrayLike = None
    ) -> np.ndarray | None:
        if not self.exposure:
            return super().locations(targets)
        values = self.check_targets(targets)
        relative = checked_exposures(exposures, values) / self.mean_exposure.numpy()
        least = np.exp(self.target_low.numpy().astype(np.float64))
        return self._unlocated(np.log(np.maximum(values / relative, least)))

    @property
    def _log_exposure(self) -> np.ndarray | float:
        """Log of the mean exposure: of means within bounds over those of a unit."""
        return np.log(np.asarray(self.mean_exposure)) if self.exposure else 0.0

    def _unlocated(self, values: np.ndarray) -> np.ndarray:
        values = values - self._log_exposure
        return values - self.target_shift.numpy() if self.standardize else values

    def log_units(self, further: Tensor) -> Tensor:
        return further

    def _concentration(self, raw: dict[str, Tensor], log_mean: Tensor) -> Tensor | None:
        """Returns the concentration, [..., k], or None if it is infinite."""
        raise NotImplementedError

    def _distribution(self, outputs: Tensor) -> tuple[Any, ...]:
        """Returns mean, log mean and concentration, [..., k] each."""
        raw = self._raw(outputs)
        log_mean = raw["location"]
        if self.standardize:
            log_mean = log_mean + self._value(self.target_shift, log_mean)
        if self.exposure:
            unit = self._value(self.mean_exposure, log_mean)
            log_mean = log_mean + ops.log(unit)
        log_mean = self._bounded(log_mean)
        concentration = self._concentration(raw, log_mean)
        log_mean = self._moved(log_mean, raw)
        if not self.exposure:
            return ops.exp(log_mean), log_mean, concentration
        relative = raw["exposure"] / unit
        mean = relative * ops.exp(log_mean)
        return mean, log_mean + ops.log(relative), concentration

    def _in_doubles(self, outputs: Tensor) -> tuple[tuple[Any, ...], DType]:
        """Returns the distribution in float64, and the precision of the outputs."""
        dtype = self.at_least_float32(outputs).dtype
        return self._distribution(ops.cast(outputs, "float64")), dtype

    def mean(self, outputs: Tensor) -> Tensor:
        return self._distribution(outputs)[0]

    def variance(self, outputs: Tensor) -> Tensor:
        return _variance(*self._distribution(outputs))

    def log_densities(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        distribution = self._distribution(outputs)
        values = ops.cast(values, distribution[0].dtype)
        return count_distribution.log_mass(values, *distribution)

    def prob(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns the mass at `values`, [..., k]; 0 unless a value is a count."""
        distribution = self._distribution(outputs)
        values = ops.cast(values, distribution[0].dtype)
        counts = ops.floor(ops.maximum(values, 0.0))
        mass = ops.exp(count_distribution.log_mass(counts, *distribution))
        return ops.where(counts == values, mass, 0.0)

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        distribution, dtype = self._in_doubles(outputs)
        return ops.cast(_cdf(ops.cast(values, "float64"), *distribution), dtype)

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        distribution, dtype = self._in_doubles(outputs)
        return ops.cast(_quantile(ops.cast(levels, "float64"), *distribution), dtype)


def _variance(mean: Tensor, log_mean: Tensor, concentration: Tensor) -> Tensor:
    return mean if concentration is None else mean + ops.square(mean) / concentration


def _cdf(values: Tensor, *distribution: Tensor) -> Tensor:
    counts = ops.clip_by_value(ops.floor(values), 0.0, _LARGEST_VALUE)
    found = count_distribution.cumulative(counts, *distribution)
    return ops.where(values >= 0.0, found, 0.0)


def _quantile(levels: Tensor, *distribution: Tensor) -> Tensor:
    mean, *_ = distribution
    below, enough = bracket_of_counts(levels, mean, _variance(*distribution))
    return least_integer(
        lambda counts: _cdf(counts, *distribution) >= levels, below, enough
    )


@register("poisson", "A count whose variance is its mean.")
class Poisson(Counts):
    """Counts of events that happen independently of each other.

        p(y | f) = rate^y exp(-rate) / y!,  log rate = log(average) + f

    with mean and variance `rate`. The network gives one output f per target; `average`
    is the mean of the training targets, which the first `fit` sets. If the variance
    exceeds the mean, use `NegativeBinomial`. With `exposure=True` the network gives the
    exposure e after them, and `log rate = log e + log(average) + f`.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Poisson()
    >>> likelihood.build((None, 1))
    >>> likelihood.adapt([0, 1, 2, 5])
    >>> likelihood.mean([[0.0]]).numpy().tolist()
    [[2.0]]
    >>> likelihood.quantile(0.9, [[0.0]]).numpy().tolist()
    [[4.0]]
    """

    def __init__(
        self, standardize: Standardize = True, exposure: bool = False, **kwargs: Any
    ):
        super().__init__(exposure, standardize=standardize, **kwargs)

    def _noise_sizes(self, num_targets: int) -> dict[str, int]:
        return {}

    def _concentration(self, raw: dict[str, Tensor], log_mean: Tensor) -> None:
        return None

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        return {"rate": self.mean(outputs)}


Concentration = Annotated[
    PositiveNumber | None,
    Field(description="Null to learn it."),
]


@register("negative_binomial", "A count whose variance may exceed its mean.")
class NegativeBinomial(Counts):
    """Counts whose variance exceeds their mean, by mean m and concentration r.

        p(y | f) = G(y + r) / (G(r) y!) * (r / (r + m))^r (m / (r + m))^y,
        log m = log(average) + f

    with the variance `m + m^2 / r` (NB2 of Cameron and Trivedi 1986): a Poisson rate
    that is gamma distributed. The limit for r to infinity is `Poisson`. `average` is as
    for `Poisson`. The concentration is learned, one per target, and initially gives the
    variance of the training targets, or twice their mean if that is more; or it is a
    number; or with `heteroscedastic=True` the network gives 2k outputs, k for the means
    and k whose softplus is the dispersion `1 / r`.

    The training targets bound a learned or predicted dispersion so that the length of
    the tail, m / r, is less than four times the greatest of them. Up to half of that,
    the dispersion is left as it is.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.NegativeBinomial(concentration=4.0)
    >>> likelihood.build((None, 1))
    >>> likelihood.adapt([0, 1, 2, 5])
    >>> likelihood.variance([[0.0]]).numpy().tolist()
    [[3.0]]

    Args:
        heteroscedastic: Whether the network gives the dispersion of each row.
        concentration: The concentration r, positive; None to learn it.
    """

    def __init__(
        self,
        heteroscedastic: Heteroscedastic = False,
        concentration: Concentration = None,
        standardize: Standardize = True,
        exposure: bool = False,
        **kwargs: Any,
    ):
        super().__init__(
            exposure,
            heteroscedastic=heteroscedastic,
            standardize=standardize,
            **kwargs,
        )
        if concentration is not None:
            positive_number("concentration", concentration)
        self.concentration = concentration
        self._check_noise()

    def _concentration(self, raw: dict[str, Tensor], log_mean: Tensor) -> Tensor:
        location = raw["location"]
        if self.concentration is not None:
            concentration = ops.constant(self.concentration, location.dtype)
        else:
            initial = self._initial_dispersion(location)
            limit = self._longest_tail(log_mean)
            concentration = 1.0 / soft_limit(initial * self._noise(raw["noise"]), limit)
        return ops.broadcast_to(concentration, ops.shape(location))

    def _initial_dispersion(self, like: Tensor) -> Tensor:
        """Returns 1 / r at the variance of the training targets, [k]."""
        inverse_mean = ops.exp(-self._value(self.target_shift, like))
        if self.exposure:
            inverse_mean = inverse_mean / self._value(self.mean_exposure, like)
        variation = ops.square(self._value(self.target_scale, like))
        return ops.maximum(variation - inverse_mean, inverse_mean)

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        mean, _, concentration = self._distribution(outputs)
        return {"mean": mean, "concentration": concentration}
