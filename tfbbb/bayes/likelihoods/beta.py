"""The beta likelihood."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.numbers import is_finite_number
from tfbbb.base.types import ArrayLike, DType, Tensor
from tfbbb.bayes.families.arguments import Number
from tfbbb.bayes.families.support import Support
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.mean_concentration import Concentration, MeanConcentration
from tfbbb.bayes.likelihoods.regression import (
    Heteroscedastic,
    Standardize,
    broadcast_together,
    soft_clip,
)

# At larger logits, single precision rounds the mean to a bound.
_LARGEST_LOGIT = 30.0
# In logits: no mean is absurd so close to that of the training targets, and the limit
# of the distance from their range.
_LEAST_DISTANCE, _MARGIN = 1.0, 0.5
# For training targets that lie at the bounds, with hardly any between.
_SMALLEST_INITIAL = 1e-3


Low = Annotated[Number, Field(description="Lower bound.")]
High = Annotated[Number, Field(description="Upper bound.")]


@register("beta", "A number strictly between two bounds.")
class Beta(MeanConcentration):
    """Targets between two bounds, such as shares and rates.

        (y - low) / (high - low) ~ Beta(m c, (1 - m) c),
        logit m = logit(mean) + width * f

    with mean m, concentration c, and variance `m (1 - m) / (1 + c)` (Ferrari and
    Cribari-Neto 2004). The first `fit` sets `mean` to the mean of the training targets,
    scaled to between 0 and 1, and `width` to their standard deviation in logits,
    `deviation / (mean (1 - mean))`. Initially m is their mean and c gives their
    variance.

    `logit m` is left as it is in the range of the logits of the training targets and
    within 1 of that of their mean; beyond, it approaches a bound at a distance of 1/2.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Beta(concentration=3.0, high=100.0)
    >>> likelihood.build((None, 1))
    >>> likelihood.mean([[0.0]]).numpy().tolist()
    [[50.0]]
    >>> likelihood.variance([[0.0]]).numpy().tolist()
    [[625.0]]

    Args:
        low: Lower bound of the targets, which lie strictly above it.
        high: Upper bound of the targets, which lie strictly below it.
        standardize: Whether the network works in standard units; else it gives
            `logit m` itself.
    """

    def __init__(
        self,
        low: Low = 0.0,
        high: High = 1.0,
        heteroscedastic: Heteroscedastic = False,
        concentration: Concentration = None,
        standardize: Standardize = True,
        **kwargs: Any,
    ):
        super().__init__(heteroscedastic, concentration, standardize, **kwargs)
        if not (is_finite_number(low) and is_finite_number(high)):
            raise ValueError(
                "The bounds must be finite numbers, `low` smaller than `high`. "
                f"Received: low={low!r}, high={high!r}"
            )
        self.low, self.high = low, high
        # Raises ValueError if no number lies between the bounds.
        self.support = self.support_of(low, high)

    @classmethod
    def support_of(cls, low: float = 0.0, high: float = 1.0, **options: Any) -> Support:
        return Support(low, high, closed=False)

    _widest_range = (-_LARGEST_LOGIT, _LARGEST_LOGIT)

    def _range(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        def logit(values: np.ndarray) -> np.ndarray:
            logits = np.log(values - self.low) - np.log(self.high - values)
            return np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT)

        centre = logit(values.mean(axis=0))
        return (
            np.minimum(logit(values.min(axis=0)), centre - _LEAST_DISTANCE),
            np.maximum(logit(values.max(axis=0)), centre + _LEAST_DISTANCE),
        )

    def _shift_and_scale(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, deviation = super()._shift_and_scale(values)
        span = self.high - self.low
        above, below = (mean - self.low) / span, (self.high - mean) / span
        binomial = above * below
        initial = binomial / np.square(deviation / span) - 1.0
        self._check_concentration(initial, values)
        return np.log(above / below), deviation / span / binomial

    def _parameters(self, outputs: Tensor) -> tuple[Tensor, ...]:
        """Returns the concentrations of the upper and the lower bound."""
        raw = self._raw(outputs)
        logit = self._located(raw["location"])
        logit = soft_clip(
            logit,
            self._value(self.target_low, logit),
            self._value(self.target_high, logit),
            _MARGIN,
        )
        shift = self._value(self.target_shift, logit)
        binomial = ops.sigmoid(shift) * ops.sigmoid(-shift)
        width = self._value(self.target_scale, logit)
        initial = 1.0 / (ops.square(width) * binomial) - 1.0
        concentration = self._concentration(
            raw, initial=ops.maximum(initial, _SMALLEST_INITIAL)
        )
        return concentration * ops.sigmoid(logit), concentration * ops.sigmoid(-logit)

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        upper, lower = self._parameters(outputs)
        return {"concentration1": upper, "concentration0": lower}

    def mean(self, outputs: Tensor) -> Tensor:
        upper, lower = self._parameters(outputs)
        return self.low + (self.high - self.low) * upper / (upper + lower)

    def variance(self, outputs: Tensor) -> Tensor:
        upper, lower = self._parameters(outputs)
        total, span = upper + lower, self.high - self.low
        return span**2 * (upper / total) * (lower / total) / (1.0 + total)

    def log_densities(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        upper, lower = self._parameters(outputs)
        above, below = self._distances(values, upper.dtype)
        inside = (above > 0.0) & (below > 0.0)
        above = ops.where(inside, above, ops.ones_like(above))
        below = ops.where(inside, below, ops.ones_like(below))
        densities = (
            (upper - 1.0) * ops.log(above)
            + (lower - 1.0) * ops.log(below)
            - ops.lbeta(upper, lower)
            - math.log(self.high - self.low)
        )
        return ops.where(inside, densities, ops.constant(-math.inf, densities.dtype))

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        upper, lower = self._parameters(outputs)
        above, _ = self._distances(values, upper.dtype)
        return ops.betainc(
            *broadcast_together(upper, lower, ops.clip_by_value(above, 0.0, 1.0))
        )

    def _distances(self, values: ArrayLike, dtype: DType) -> tuple[Tensor, Tensor]:
        """Returns the distances from both bounds, as shares of the span."""
        values, span = ops.cast(values, dtype), self.high - self.low
        return (values - self.low) / span, (self.high - values) / span

    def _inverse(self, levels: Tensor, *parameters: Tensor) -> Tensor:
        upper, lower, levels = broadcast_together(*parameters, levels)
        # TFP's inverse is wrong by up to 90 % at a level of one half. Start beside it,
        # and correct the result by one step of Newton's method.
        at_half = ops.abs(levels - 0.5) < 1e-8
        beside = levels + 1e-7 * ops.cast(at_half, levels.dtype)
        share = ops.betaincinv(upper, lower, beside)
        log_density = (
            ops.xlogy(upper - 1.0, share)
            + ops.xlog1py(lower - 1.0, -share)
            - ops.lbeta(upper, lower)
        )
        excess = ops.betainc(upper, lower, share) - levels
        corrected = share - excess * ops.exp(-log_density)
        share = ops.where(at_half, ops.clip_by_value(corrected, 0.0, 1.0), share)
        return self.low + (self.high - self.low) * share
