"""The likelihood of a mixture of normals."""

from __future__ import annotations

from statistics import NormalDist
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np
from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.families.arguments import Integer
from tfbbb.bayes.likelihoods.inversion import inverted
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.regression import Regression, Standardize
from tfbbb.bayes.likelihoods.standard_normal import (
    standard_normal_cdf,
    standard_normal_log_prob,
)

Components = Annotated[Integer, Field(ge=1, le=50, description="Number of modes.")]


@register("normal_mixture", "A number whose distribution has several modes.")
class NormalMixture(Regression):
    """Targets of several modes: `p(y | f) = sum_c w_c N(y; loc_c, scale_c^2)`.

    A mixture density network (Bishop 1994). For C components and k targets the network
    gives 3 C k outputs: logits of the weights, locations and raw scales, [C, k] each.
    Locations and scales are in standard units of the targets, as for
    `tfbbb.likelihoods.Normal`. For outputs of 0, the components lie beside each other,
    so that each can find its own mode: at the standard normal quantiles of
    `(c - 1/2) / C`, with the scale that gives the mixture the mean and variance of the
    targets.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.NormalMixture(components=2)
    >>> likelihood.num_outputs(1)
    6

    Args:
        components: Number C of components.
    """

    def __init__(
        self, components: Components = 2, standardize: Standardize = True, **kwargs: Any
    ):
        super().__init__(heteroscedastic=True, standardize=standardize, **kwargs)
        self.components = positive_integer("components", components)
        levels = (np.arange(components) + 0.5) / components
        self._offsets = np.array([[NormalDist().inv_cdf(level)] for level in levels])
        self._unit_scale = float(np.sqrt(1.0 - np.mean(np.square(self._offsets))))

    def _location_sizes(self, num_targets: int) -> dict[str, int]:
        size = self.components * num_targets
        return {"logits": size, "locations": size}

    def _noise_sizes(self, num_targets: int) -> dict[str, int]:
        return {"noise": self.components * num_targets}

    def _parameters(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns logarithms of weights, locations and scales, [..., C, k] each."""
        by_component = {}
        for name, raw in self._raw(outputs).items():
            shape = [self.components, self.num_targets]
            by_component[name] = ops.reshape(
                raw, ops.concat([ops.shape(raw)[:-1], shape], axis=0)
            )
        locations = by_component["locations"]
        unit = self._value(self.target_scale, locations)
        offsets = unit * ops.constant(self._offsets, locations.dtype)
        scales = unit * self._unit_scale * self._noise(by_component["noise"])
        log_weights = ops.log_softmax(by_component["logits"], axis=-2)
        return log_weights, self._located(locations) + offsets, scales

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        log_weights, locations, scales = self._parameters(outputs)
        by_component = {
            "probs": ops.exp(log_weights),
            "loc": locations,
            "scale": scales,
        }
        return {
            name: ops.matrix_transpose(value) for name, value in by_component.items()
        }

    def mean(self, outputs: Tensor) -> Tensor:
        log_weights, locations, _ = self._parameters(outputs)
        return ops.reduce_sum(ops.exp(log_weights) * locations, axis=-2)

    def variance(self, outputs: Tensor) -> Tensor:
        log_weights, locations, scales = self._parameters(outputs)
        weights = ops.exp(log_weights)
        mean = ops.reduce_sum(weights * locations, axis=-2, keepdims=True)
        squares = ops.square(scales) + ops.square(locations - mean)
        return ops.reduce_sum(weights * squares, axis=-2)

    def log_densities(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        return _log_density(values, *self._parameters(outputs))

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        return _distribution(values, *self._parameters(outputs))

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        parameters = self._parameters(ops.cast(outputs, "float64"))
        levels = ops.cast(levels, "float64")
        _, locations, scales = parameters
        # A mixture's quantile lies between those of its components.
        per_component = locations + scales * _with_component_axis(
            ops.ndtri(levels), locations
        )
        found = inverted(
            lambda values: _distribution(values, *parameters),
            lambda values: ops.exp(_log_density(values, *parameters)),
            levels,
            ops.reduce_min(per_component, axis=-2),
            ops.reduce_max(per_component, axis=-2),
        )
        return ops.cast(found, self.at_least_float32(outputs).dtype)

    @property
    def noise_size(self) -> int:
        return 2 * self.num_targets

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        log_weights, locations, scales = self._parameters(outputs)
        choosing, normal = ops.split(ops.cast(noise, scales.dtype), 2, axis=-1)
        uniform = standard_normal_cdf(choosing)[..., ops.newaxis, :]
        cumulative = ops.cumsum(ops.exp(log_weights), axis=-2)
        # Leave out the last cumulative probability, which is 1 up to rounding.
        beyond = ops.cast(uniform > cumulative[..., :-1, :], "int32")
        component = ops.reduce_sum(beyond, axis=-2, keepdims=True)
        every = ops.range(self.components)[:, ops.newaxis]
        chosen = ops.cast(component == every, scales.dtype)
        location = ops.reduce_sum(chosen * locations, axis=-2)
        return location + ops.reduce_sum(chosen * scales, axis=-2) * normal


def _with_component_axis(values: ArrayLike, locations: Tensor) -> Tensor:
    """Returns values [..., k], or a scalar, as [..., 1, k]."""
    values = ops.cast(values, locations.dtype)
    values = values + ops.zeros_like(locations[..., 0, :])
    return values[..., ops.newaxis, :]


def _log_density(
    values: ArrayLike, log_weights: Tensor, locations: Tensor, scales: Tensor
) -> Tensor:
    z = (_with_component_axis(values, locations) - locations) / scales
    per_component = log_weights + standard_normal_log_prob(z) - ops.log(scales)
    return ops.reduce_logsumexp(per_component, axis=-2)


def _distribution(
    values: ArrayLike, log_weights: Tensor, locations: Tensor, scales: Tensor
) -> Tensor:
    z = (_with_component_axis(values, locations) - locations) / scales
    return ops.reduce_sum(ops.exp(log_weights) * standard_normal_cdf(z), axis=-2)
