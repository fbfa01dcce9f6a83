"""The likelihood of a mixture of normals."""

from __future__ import annotations

from statistics import NormalDist
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base.lazy import np, tf
from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.families.arguments import Integer
from tfbbb.bayes.likelihoods.inversion import inverted
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.normal import standard_normal_cdf, standard_normal_log_prob
from tfbbb.bayes.likelihoods.regression import Regression, Standardize, at_least_float32

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

    def _parameters(self, outputs: Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns logarithms of weights, locations and scales, [..., C, k] each."""
        by_component = {}
        for name, raw in self._raw(outputs).items():
            shape = [self.components, self.num_targets]
            by_component[name] = tf.reshape(
                raw, tf.concat([tf.shape(raw)[:-1], shape], axis=0)
            )
        locations = by_component["locations"]
        unit = self._value(self.target_scale, locations)
        offsets = unit * tf.constant(self._offsets, locations.dtype)
        scales = unit * self._unit_scale * self._noise(by_component["noise"])
        log_weights = tf.nn.log_softmax(by_component["logits"], axis=-2)
        return log_weights, self._located(locations) + offsets, scales

    def parameters(self, outputs: Tensor) -> dict[str, tf.Tensor]:
        log_weights, locations, scales = self._parameters(outputs)
        by_component = {"probs": tf.exp(log_weights), "loc": locations, "scale": scales}
        return {
            name: tf.linalg.matrix_transpose(value)
            for name, value in by_component.items()
        }

    def mean(self, outputs: Tensor) -> tf.Tensor:
        log_weights, locations, _ = self._parameters(outputs)
        return tf.reduce_sum(tf.exp(log_weights) * locations, axis=-2)

    def variance(self, outputs: Tensor) -> tf.Tensor:
        log_weights, locations, scales = self._parameters(outputs)
        weights = tf.exp(log_weights)
        mean = tf.reduce_sum(weights * locations, axis=-2, keepdims=True)
        squares = tf.square(scales) + tf.square(locations - mean)
        return tf.reduce_sum(weights * squares, axis=-2)

    def log_prob(self, targets: ArrayLike, outputs: Tensor) -> tf.Tensor:
        parameters = self._parameters(outputs)
        return tf.reduce_sum(_log_density(targets, *parameters), axis=-1)

    def prob(self, values: ArrayLike, outputs: Tensor) -> tf.Tensor:
        return tf.exp(_log_density(values, *self._parameters(outputs)))

    def cdf(self, values: ArrayLike, outputs: Tensor) -> tf.Tensor:
        return _distribution(values, *self._parameters(outputs))

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> tf.Tensor:
        parameters = self._parameters(tf.cast(outputs, tf.float64))
        levels = tf.cast(levels, tf.float64)
        _, locations, scales = parameters
        # A mixture's quantile lies between those of its components.
        per_component = locations + scales * _with_component_axis(
            tf.math.ndtri(levels), locations
        )
        found = inverted(
            lambda values: _distribution(values, *parameters),
            lambda values: tf.exp(_log_density(values, *parameters)),
            levels,
            tf.reduce_min(per_component, axis=-2),
            tf.reduce_max(per_component, axis=-2),
        )
        return tf.cast(found, at_least_float32(outputs).dtype)

    @property
    def noise_size(self) -> int:
        return 2 * self.num_targets

    def sample(self, outputs: Tensor, noise: Tensor) -> tf.Tensor:
        log_weights, locations, scales = self._parameters(outputs)
        choosing, normal = tf.split(tf.cast(noise, scales.dtype), 2, axis=-1)
        uniform = standard_normal_cdf(choosing)[..., tf.newaxis, :]
        cumulative = tf.cumsum(tf.exp(log_weights), axis=-2)
        # Leave out the last cumulative probability, which is 1 up to rounding.
        beyond = tf.cast(uniform > cumulative[..., :-1, :], tf.int32)
        component = tf.reduce_sum(beyond, axis=-2, keepdims=True)
        every = tf.range(self.components)[:, tf.newaxis]
        chosen = tf.cast(component == every, scales.dtype)
        location = tf.reduce_sum(chosen * locations, axis=-2)
        return location + tf.reduce_sum(chosen * scales, axis=-2) * normal


def _with_component_axis(values: ArrayLike, locations: tf.Tensor) -> tf.Tensor:
    """Returns values [..., k], or a scalar, as [..., 1, k]."""
    num_targets = locations.shape[-1]
    values = tf.cast(values, locations.dtype) + tf.zeros([num_targets], locations.dtype)
    return values[..., tf.newaxis, :]


def _log_density(
    values: ArrayLike, log_weights: tf.Tensor, locations: tf.Tensor, scales: tf.Tensor
) -> tf.Tensor:
    z = (_with_component_axis(values, locations) - locations) / scales
    per_component = log_weights + standard_normal_log_prob(z) - tf.math.log(scales)
    return tf.reduce_logsumexp(per_component, axis=-2)


def _distribution(
    values: ArrayLike, log_weights: tf.Tensor, locations: tf.Tensor, scales: tf.Tensor
) -> tf.Tensor:
    z = (_with_component_axis(values, locations) - locations) / scales
    return tf.reduce_sum(tf.exp(log_weights) * standard_normal_cdf(z), axis=-2)
