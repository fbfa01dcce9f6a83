"""The Student t likelihood."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base import array_ops as ops
from tfbbb.base.numbers import is_finite_number
from tfbbb.base.types import Tensor
from tfbbb.bayes.families.arguments import Number
from tfbbb.bayes.families.support import LARGEST_TARGET
from tfbbb.bayes.likelihoods.inversion import SMALLEST_LEVEL, inverted
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.location_scale import LocationScale, NoiseScale, Resolution
from tfbbb.bayes.likelihoods.regression import (
    Heteroscedastic,
    Standardize,
    broadcast_together,
    positive,
    soft_limit,
)

# With more degrees of freedom than this, the noise has a variance.
_LEAST_DF = 2.0
# In addition to the least: initially there are six degrees of freedom.
_INITIAL_DF = 4.0
# TensorFlow's incomplete beta function loses digits beyond.
_MOST_DF = 1e5


DegreesOfFreedom = Annotated[
    Number | None,
    Field(
        gt=2,
        description="Degrees of freedom; null to learn them.",
    ),
]


@register("student_t", "A number with outliers: the default of a regression.")
class StudentT(LocationScale):
    """Targets with outliers: `y = loc + scale * t`, t of `df` degrees of freedom.

        p(y | f) = c (1 + z^2 / df)^(-(df + 1) / 2) / scale,  z = (y - loc) / scale

    The variance is `scale^2 df / (df - 2)`; it exists because `df > 2`. `loc`, and the
    shift and scale of the targets, are as for `Normal`. A learned `df` is initially 6,
    and the noise initially has the variance of the targets. A heteroscedastic network
    gives 3k outputs: k locations, k raw scales and k raw `df` (2k where `df` is given).

    Near 2 degrees of freedom the variance is large beyond measure. The training targets
    therefore bound a learned or predicted scale so that the standard deviation is less
    than their range. Up to half of that, which no distribution within the range exceeds
    (Popoviciu 1935), the scale is left as it is.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.StudentT(df=4.0, scale=1.0)
    >>> likelihood.build((None, 1))
    >>> round(float(likelihood.variance([[0.0]])[0, 0]), 4)
    2.0

    Args:
        df: Degrees of freedom, more than 2; None to learn them.
    """

    _shape_names = ("df",)
    slow_quantiles = True
    _widest_range = (-LARGEST_TARGET, LARGEST_TARGET)

    def __init__(
        self,
        heteroscedastic: Heteroscedastic = False,
        df: DegreesOfFreedom = None,
        scale: NoiseScale = None,
        standardize: Standardize = True,
        resolution: Resolution = None,
        **kwargs: Any,
    ):
        super().__init__(heteroscedastic, scale, standardize, resolution, **kwargs)
        if df is not None and not (is_finite_number(df) and df > _LEAST_DF):
            raise ValueError(
                "`df` must be finite and greater than 2, for the noise to have a "
                f"variance. Received: df={df!r}"
            )
        self.df = df

    def _noise_sizes(self, num_targets: int) -> dict[str, int]:
        sizes = super()._noise_sizes(num_targets)
        return sizes if self.df is not None else {**sizes, "df": num_targets}

    @property
    def _unit_scale(self) -> float:
        df = _LEAST_DF + _INITIAL_DF if self.df is None else self.df
        return math.sqrt((df - _LEAST_DF) / df)

    def _shape(self, raw: dict[str, Tensor]) -> tuple[Tensor, ...]:
        if self.df is not None:
            return (ops.constant(self.df, raw["location"].dtype),)
        return (_LEAST_DF + _INITIAL_DF * positive(raw["df"]),)

    def _noise_parameters(self, raw: dict[str, Tensor]) -> tuple[Tensor, ...]:
        location, scale, df = super()._noise_parameters(raw)
        if self.scale is None:
            low = self._value(self.target_low, location)
            range_ = self._value(self.target_high, location) - low
            scale = soft_limit(scale, range_ * ops.sqrt((df - _LEAST_DF) / df))
        return location, scale, df

    def _log_density(self, z: Tensor, *shape: Tensor) -> Tensor:
        (df,) = shape
        tails = -0.5 * (df + 1.0) * ops.log1p(ops.square(z) / df)
        return tails + _log_density_at_0(df)

    def _distribution(self, z: Tensor, *shape: Tensor) -> Tensor:
        # The incomplete beta function of many degrees of freedom needs all digits.
        given, value = ops.cast(shape[0], "float64"), ops.cast(z, "float64")
        df, square = ops.minimum(given, _MOST_DF), ops.square(value)
        # Near the centre and in the tails, another argument has all its digits.
        near = square < 1.0
        half = ops.constant(0.5, "float64")
        part = ops.betainc(
            ops.where(near, half, half * df),
            ops.where(near, half * df, half),
            ops.where(near, square, df) / (df + square),
        )
        centre = half + half * ops.sign(value) * part
        tails = ops.where(value < 0.0, half * part, 1.0 - half * part)
        few = ops.where(near, centre, tails)
        # Wallace (1959): the error is of the order 1 / df^2.
        normal = value * (1.0 - 0.25 / given) / ops.sqrt(1.0 + 0.5 * square / given)
        many = 0.5 * ops.erfc(-normal * math.sqrt(0.5))
        return ops.cast(ops.where(given > _MOST_DF, many, few), z.dtype)

    def _inverse(self, levels: Tensor, *shape: Tensor) -> Tensor:
        df = ops.cast(shape[0], "float64")
        wanted, df = broadcast_together(ops.cast(levels, "float64"), df)
        # The lower tail has all its digits.
        lower = ops.clip_by_value(
            ops.minimum(wanted, 1.0 - wanted), SMALLEST_LEVEL, 0.5
        )
        # No distribution with this variance has a lower quantile (Cantelli 1928).
        stddev = ops.sqrt(df / (df - _LEAST_DF))
        least = -1.001 * stddev * ops.sqrt((1.0 - lower) / lower)
        found = inverted(
            lambda z: self._distribution(z, df),
            lambda z: ops.exp(self._log_density(z, df)),
            lower,
            least,
            ops.zeros_like(least),
        )
        return ops.cast(ops.where(wanted < 0.5, found, -found), levels.dtype)

    def _standard_variance(self, *shape: Tensor) -> Tensor:
        (df,) = shape
        return df / (df - _LEAST_DF)


def _log_density_at_0(df: Tensor) -> Tensor:
    """Returns log Gamma((df + 1) / 2) - log Gamma(df / 2) - log(pi df) / 2.

    For many degrees of freedom the differences would lose digits; the first terms of
    Stirling's series have an error below 1e-9 there, and end at the normal density.
    """
    inverse = 1.0 / ops.maximum(0.5 * df, 10.0)
    square = ops.square(inverse)
    series = 1 / 8 - square * (1 / 192 - square * (1 / 640 - square * (17 / 14336)))
    half = ops.minimum(0.5 * df, 10.0)
    few = ops.lgamma(half + 0.5) - ops.lgamma(half)
    return ops.where(
        df > 20.0,
        -0.5 * math.log(2.0 * math.pi) - inverse * series,
        few - 0.5 * ops.log(2.0 * math.pi * half),
    )
