"""The base class of location-scale likelihoods."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np, tf
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.families.arguments import PositiveNumber
from tfbbb.bayes.likelihoods.regression import (
    SMALLEST_NOISE,
    Heteroscedastic,
    Regression,
    Standardize,
)

NoiseScale = Annotated[
    PositiveNumber | None,
    Field(
        description="Scale of the noise, in units of the target; null to learn it.",
    ),
]
Resolution = Annotated[
    PositiveNumber | None,
    Field(
        description="Step between possible targets, 1 for whole numbers: the noise is "
        "at least that of rounding. Null for targets that may be any number.",
    ),
]


class LocationScale(Regression):
    """`y = loc + scale * z` for each target, with z of a standard density.

    Subclasses define the density of z, which has mean 0 and is symmetric; others
    override `mean` and `_from_standard_normal`. `loc` is an output of the network,
    `scale` is learned, given, or an output.

    Args:
        heteroscedastic: Whether the network gives the noise of each row.
        scale: The scale of the noise in the units of the targets, positive; None to
            learn it.
        standardize: Whether the network works in standard units.
        resolution: The step r between possible targets, positive; None if a target may
            be any number. The scale is then `sqrt(s^2 + r^2 / 12)` with the learned s:
            rounding alone has this standard deviation, so the density at a possible
            target says no more than its probability does.
    """

    def __init__(
        self,
        heteroscedastic: Heteroscedastic = False,
        scale: NoiseScale = None,
        standardize: Standardize = True,
        resolution: Resolution = None,
        **kwargs: Any,
    ):
        super().__init__(
            heteroscedastic=heteroscedastic, standardize=standardize, **kwargs
        )
        if scale is not None:
            positive_number("scale", scale)
        if resolution is not None:
            positive_number("resolution", resolution)
        self.scale = scale
        self.resolution = resolution
        self._check_noise()

    # Names of the parameters of the standard density itself.
    _shape_names: tuple[str, ...] = ()

    @property
    def starts_at_residuals(self) -> bool:
        """Whether a network in units of the targets may have been trained before."""
        # Its residuals tell more of the noise than the targets do.
        learned = self._learned.get("noise")
        return (
            not self.standardize
            and self.unbounded
            and learned is not None
            and learned.shape[-1] == self.num_targets
        )

    def start_noise(self, residuals: np.ndarray) -> None:
        """Starts a learned noise at the size of residuals, at most at its present one.

        They are targets less locations, [members, n, k]; NaN does not count.
        """
        size = np.sqrt(np.nanmean(np.square(residuals), axis=1))
        variable = self._learned["noise"]
        factor = np.clip(size / self.target_scale.numpy(), 10 * SMALLEST_NOISE, 1.0)
        noise = self._noise(tf.convert_to_tensor(variable)).numpy() * factor
        raw = np.log(np.expm1(noise - SMALLEST_NOISE)) - self._noise_offset
        variable.assign(raw.reshape(variable.shape))

    @property
    def _unit_scale(self) -> float:
        """The initial scale, at which the variance is 1."""
        return 1.0

    def _shape(self, raw: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Returns the parameters of the standard density, [k] or [..., k] each."""
        return ()

    # The standard density, of z and its shape. Times that are cut off need the log of
    # the probability beyond z.
    _log_density: Callable[..., Tensor]
    _distribution: Callable[..., Tensor]
    _log_survival: Callable[..., Tensor]
    _inverse: Callable[..., Tensor]
    _standard_variance: Callable[..., Tensor]

    def _from_standard_normal(self, noise: Tensor, *shape: Tensor) -> Tensor:
        """Returns z at the level of `noise` in the standard normal distribution."""
        # The lower tail keeps its precision; 1 minus a small number does not.
        lower = 0.5 * ops.erfc(ops.abs(noise) * math.sqrt(0.5))
        return -ops.sign(noise) * self._inverse(lower, *shape)

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        location, scale, *shape = self._noise_parameters(self._raw(outputs))
        spread = [ops.broadcast_to(value, ops.shape(location)) for value in shape]
        named = dict(zip(self._shape_names, spread, strict=True))
        return {"loc": location, "scale": scale, **named}

    def locations(
        self, targets: ArrayLike, exposures: ArrayLike = None
    ) -> np.ndarray | None:
        return self._unlocated(self.check_targets(targets))

    def mean(self, outputs: Tensor) -> Tensor:
        return self._located(self._raw(outputs)["location"])

    def variance(self, outputs: Tensor) -> Tensor:
        _, scale, *shape = self._noise_parameters(self._raw(outputs))
        return ops.square(scale) * self._standard_variance(*shape)

    def log_densities(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        location, scale, *shape = self._target_parameters(self._raw(outputs))
        z = (ops.cast(values, location.dtype) - location) / scale
        return self._log_density(z, *shape) - ops.log(scale)

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        location, scale, *shape = self._target_parameters(self._raw(outputs))
        z = (ops.cast(values, location.dtype) - location) / scale
        return self._distribution(z, *shape)

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        location, scale, *shape = self._target_parameters(self._raw(outputs))
        return location + scale * self._inverse(ops.cast(levels, scale.dtype), *shape)

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        location, scale, *shape = self._target_parameters(self._raw(outputs))
        return location + scale * self._from_standard_normal(
            ops.cast(noise, scale.dtype), *shape
        )

    def _noise_parameters(self, raw: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Returns location and scale of the noise, [..., k] in raw units, and shape."""
        location, shape = self._located(raw["location"]), self._shape(raw)
        if self.scale is not None:
            scale = ops.constant(self.scale, location.dtype)
        else:
            unit = self._unit_scale * self._value(self.target_scale, location)
            scale = unit * self._noise(raw["noise"])
            if self.resolution is not None:
                scale = ops.sqrt(ops.square(scale) + self.resolution**2 / 12.0)
        return location, ops.broadcast_to(scale, ops.shape(location)), *shape

    def _target_parameters(self, raw: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Returns location and scale of the target, whose location may vary too."""
        return self._noise_parameters(raw)
