"""The base class of likelihoods whose logarithm has a location and a scale."""

from __future__ import annotations

import math
from typing import Any

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods.likelihood import first_row, over_targets
from tfbbb.bayes.likelihoods.location_scale import (
    LocationScale,
    NoiseScale,
    Resolution,
)
from tfbbb.bayes.likelihoods.log_link import POSITIVE, LogLink
from tfbbb.bayes.likelihoods.regression import (
    Heteroscedastic,
    Standardize,
    soft_limit,
)
from tfbbb.bayes.likelihoods.standard_normal import standard_normal_log_prob
from tfbbb.bayes.target_shape import target_width

# Of the search for location and scale of times of which some are cut off.
_ITERATIONS = 100
# Half of the rows may outlive the last event by this many deviations.
_DEVIATIONS_BEYOND = 2.0


class LogScale(LogLink, LocationScale):
    """Positive targets with `log y = loc + scale * z` and a standard density of z.

    With `censored=True` a target is a time and an event, [rows, 2]. The event is 1
    where it happened at the time, and 0 where it had not happened yet: the row was
    still running then, of which the log likelihood is `log P(y > time)`. All answers
    are about the time itself, whenever it is cut off.

    Args:
        censored: Whether targets are times and events.
    """

    support = POSITIVE
    # Half the log of E[y^2] is at most `loc` and so many times `scale^2`.
    _tail = 1.0
    takes_event = True

    def __init__(
        self,
        heteroscedastic: Heteroscedastic = False,
        scale: NoiseScale = None,
        standardize: Standardize = True,
        resolution: Resolution = None,
        censored: bool = False,
        **kwargs: Any,
    ):
        super().__init__(heteroscedastic, scale, standardize, resolution, **kwargs)
        self.censored = censored

    def _num_targets(self, output_shape: tuple[int | None, ...]) -> int:
        number = super()._num_targets(output_shape)
        if self.censored and number > 1:
            raise ValueError(
                "A row has one time, so that one event tells whether it was cut off. "
                f"End the network with a layer of {self.num_outputs(1)} units. "
                f"Received: output_shape={output_shape}"
            )
        return number

    @property
    def target_widths(self) -> tuple[int, ...]:
        return (2,) if self.censored else super().target_widths

    def check_targets(
        self, targets: ArrayLike, counted: ArrayLike = None
    ) -> np.ndarray:
        if not self.censored:
            return super().check_targets(targets, counted)
        values = np.asarray(targets, dtype=np.float64)
        target_width(values.shape, self._places, self.target_widths)
        wrong = ~np.isin(values[..., 1], (0.0, 1.0))
        if counted is not None:
            wrong &= over_targets(counted, wrong)
        if wrong.any():
            row = first_row(wrong)
            raise ValueError(
                "The second number of a target tells the event: 1 where it happened at "
                "the time before it, 0 where the row was still running then. "
                f"Received: {values[row].tolist()} in row {row}"
            )
        times = self._check_support(values[..., :1], counted)
        return np.concatenate([times, values[..., 1:]], axis=-1)

    def _shift_and_scale(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.censored:
            return super()._shift_and_scale(np.log(values))
        logs, happened = np.log(values[:, 0]), values[:, 1] == 1.0
        if not happened.any():
            raise ValueError(
                "The event happened in no row, so nothing tells how long it takes. "
                f"Received: {len(values)} rows, all still running"
            )
        super()._shift_and_scale(logs[:, np.newaxis])
        shift, scale = log_moments(logs, happened)
        return np.array([shift]), np.array([scale])

    def _range(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = super()._range(values[:, : self.num_targets])
        if self.censored:
            beyond = _DEVIATIONS_BEYOND * self.target_scale.numpy()
            high = np.maximum(high, self.target_shift.numpy() + beyond)
        return low, high

    def locations(
        self, targets: ArrayLike, exposures: ArrayLike = None
    ) -> np.ndarray | None:
        if not self.censored:
            values = np.asarray(self.check_targets(targets), np.float64)
            return self._unlocated(np.log(values))
        values = np.asarray(targets, np.float64)
        if values.shape[-1] == 1:
            return self._unlocated(np.log(self._check_support(values)))
        logs, happened = np.log(values[:, 0]), values[:, 1] == 1.0
        shift, scale = (x.numpy()[0] for x in (self.target_shift, self.target_scale))
        mean, _ = moments_beyond(logs, happened, shift, scale)
        return self._unlocated(mean[:, np.newaxis])

    def _located(self, raw: Tensor) -> Tensor:
        return self._bounded(super()._located(raw))

    def _noise_parameters(self, raw: dict[str, Tensor]) -> tuple[Tensor, ...]:
        location, scale = super()._noise_parameters(raw)
        if self.scale is None:
            limit = self._log_of_longest_tail(location) / self._tail
            scale = ops.sqrt(soft_limit(ops.square(scale), limit))
        return self._moved(location, raw), scale

    def log_densities(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        logs = self._logarithms(values, outputs)
        return super().log_densities(logs, outputs) - logs

    def log_prob(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        if not self.censored:
            return super().log_prob(targets, outputs)
        targets = ops.cast(targets, self.at_least_float32(outputs).dtype)
        targets, happened = targets[..., :1], targets[..., 1:] > 0.5
        logs = self._logarithms(targets, outputs)
        location, scale = self._noise_parameters(self._raw(outputs))
        z = (logs - location) / scale
        # The gradient of the other case may be infinite.
        at_event, running = ops.where(happened, z, 0.0), ops.where(happened, 0.0, z)
        density = self._log_density(at_event) - ops.log(scale) - logs
        found = ops.where(happened, density, self._log_survival(running))
        return ops.reduce_sum(found, axis=-1)

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        return super().cdf(self._logarithms(values, outputs), outputs)

    def prob(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        logs = self._logarithms(values, outputs)
        density = ops.exp(super().log_densities(logs, outputs))
        return ops.divide_no_nan(density, ops.cast(values, density.dtype))

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        return ops.exp(super().quantile(levels, outputs))

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        return ops.exp(super().sample(outputs, noise))

    def _logarithms(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns `log y` in the precision of the outputs; minus infinity below 0."""
        values = ops.cast(values, self.at_least_float32(outputs).dtype)
        return ops.log(ops.maximum(values, 0.0))


def log_moments(logs: np.ndarray, happened: np.ndarray) -> tuple[float, float]:
    """Returns mean and deviation of `log y` by maximum likelihood of log-normal times.

    By expectation and maximisation, where not all events happened.
    """
    shift, scale = logs.mean(), logs.std()
    for _ in range(0 if happened.all() else _ITERATIONS):
        mean, variance = moments_beyond(logs, happened, shift, scale)
        shift = mean.mean()
        scale = np.sqrt(np.mean(np.square(mean - shift) + variance))
    return float(shift), float(scale)


def moments_beyond(
    logs: np.ndarray, happened: np.ndarray, shift: float, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and variance of each `log y`, [n], of N(shift, scale^2).

    Those of an event are known; those of others are beyond the log of their time.
    """
    z = (logs - shift) / scale
    log_survival = ops.logerfc(z * math.sqrt(0.5)) - math.log(2.0)
    hazard = np.exp(standard_normal_log_prob(z) - log_survival)
    variance = np.maximum(1.0 + z * hazard - np.square(hazard), 0.0)
    return (
        np.where(happened, logs, shift + scale * hazard),
        np.where(happened, 0.0, np.square(scale) * variance),
    )
