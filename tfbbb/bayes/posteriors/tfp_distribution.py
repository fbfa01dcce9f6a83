"""Any distribution of TensorFlow Probability as a variational family."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from tfbbb.base.lazy import keras, tf
from tfbbb.base.strategy import saved_as
from tfbbb.base.types import Config, Distribution, DType, Initializer, Shape, Tensor
from tfbbb.bayes.posteriors.posterior import (
    AddWeight,
    Parameters,
    Posterior,
    Sizes,
    sum_over_weights,
)


@saved_as("tfbbb.posteriors")
class TFPDistribution(Posterior):
    """A distribution of TensorFlow Probability whose parameters are trained.

    `q(w) = make(**parameters)`

    With a class of `tfp.distributions` each of its (preferred) parameters becomes one
    trainable variable of the shape and under the constraint that TFP itself states in
    `parameter_properties()`. With a function, each argument without a default becomes
    an unconstrained variable of the weight's shape; it is saved by name and must be
    registered with `keras.saving.register_keras_serializable`. The last axes of a
    weight are the distribution's event, the others are batch. Without a gradient of the
    draws (a discrete distribution) only the `score_function` estimator can train it.

    Example:

    >>> import keras, tensorflow as tf, tfbbb
    >>> import tensorflow_probability as tfp
    >>> layer = tfbbb.layers.DenseVariational(4, posterior=tfp.distributions.Laplace)

    A Student-t with 4 degrees of freedom:

    >>> @keras.saving.register_keras_serializable()
    ... def student_t(loc, log_scale):
    ...     return tfp.distributions.StudentT(4.0, loc, tf.exp(log_scale))
    >>> layer = tfbbb.layers.DenseVariational(4, posterior=student_t)

    Args:
        make: A class of `tfp.distributions`, or a function of named tensors that
            returns a distribution over tensors of the weight's shape.
        initial: Initial values by parameter: numbers, or Keras initializers, after the
            constraint; for a matrix a number is that many times the identity. Without
            one, `loc` starts at the layer's mean initializer, `scale`, `scale_diag` and
            `scale_tril` at `0.1/sqrt(fan_in)` and `log_scale` at its logarithm.
    """

    def __init__(
        self, make: Callable[..., Any], initial: Mapping[str, Any] | None = None
    ):
        if not (_is_distribution_class(make) or inspect.isfunction(make)):
            raise ValueError(
                "`make` must be a class of `tfp.distributions` or a function (`def`) "
                "that returns a distribution: it is saved by its name. "
                f"Received: make={make!r}"
            )
        self.make = make
        self.initial = dict(initial or {})
        names = self._constraints.keys()
        unknown = sorted(self.initial.keys() - names)
        missing = sorted(names - self.initial.keys() - _DEFAULTS)
        if unknown or missing:
            wrong = (
                f"has no value for {missing}" if missing else f"names unknown {unknown}"
            )
            raise ValueError(
                f"`initial` {wrong}. The parameters of {make.__name__} are "
                f"{sorted(names)}; {sorted(_DEFAULTS)} have defaults. Pass "
                f"`tfbbb.posteriors.TFPDistribution({make.__name__}, initial={{...}})`"
                f". Received: initial={initial!r}"
            )
        for name, value in self.initial.items():
            if isinstance(value, Real) and not self._allows(name, float(value)):
                raise ValueError(
                    f"`initial` is outside of what `{name}` of {make.__name__} can be. "
                    f"Received: initial={initial!r}"
                )

    def _allows(self, name: str, value: float) -> bool:
        if self._constraints[name] is None:
            return math.isfinite(value)
        bijector = self._bijector(name)
        if bijector.inverse_min_event_ndims == 0:
            return math.isfinite(bijector.inverse(value))
        # For a matrix, or for ordered values, only the sign is checked.
        return math.isfinite(value) and value > 0

    @functools.cached_property
    def _constraints(self) -> dict[str, Any]:
        """TFP's properties by parameter; None for parameters of a function."""
        if not _is_distribution_class(self.make):
            arguments = inspect.signature(self.make).parameters.values()
            return {p.name: None for p in arguments if p.default is p.empty}
        make: Any = self.make
        properties = make.parameter_properties()
        return {
            name: entry
            for name, entry in properties.items()
            if entry.is_tensor and entry.is_preferred
        }

    @functools.cached_property
    def reparameterised(self) -> bool:  # type: ignore[override]
        import tensorflow_probability as tfp

        variables = self.add_variables(_scratch_variable, (2, 2), 1, "zeros")
        probe = self.distribution({k: v.value for k, v in variables.items()})
        kind = tfp.distributions.FULLY_REPARAMETERIZED
        return probe.reparameterization_type == kind

    def get_config(self) -> Config:
        make: Any = keras.saving.serialize_keras_object(self.make)
        if _is_distribution_class(self.make):
            make = f"tfp.distributions.{self.make.__name__}"
        initial = {
            name: keras.saving.serialize_keras_object(value)
            for name, value in self.initial.items()
        }
        return {"make": make, "initial": initial}

    @classmethod
    def from_config(cls, config: Config) -> TFPDistribution:
        import tensorflow_probability as tfp

        make = config["make"]
        if isinstance(make, str):
            make = getattr(tfp.distributions, make.rpartition(".")[2])
        else:
            make = keras.saving.deserialize_keras_object(make)
        initial = {
            name: keras.saving.deserialize_keras_object(value)
            for name, value in config["initial"].items()
        }
        return cls(make, initial)

    def __repr__(self) -> str:
        return f"TFPDistribution({self.make.__name__}, initial={self.initial!r})"

    def add_variables(
        self,
        add_weight: AddWeight,
        shape: Sizes,
        fan_in: int,
        mean_initializer: Initializer,
    ) -> dict[str, keras.Variable]:
        scale = 0.1 / math.sqrt(fan_in)
        values = {
            "loc": mean_initializer,
            "scale": scale,
            "scale_diag": scale,
            "scale_tril": scale,
            "log_scale": math.log(scale),
            **self.initial,
        }
        variables = {}
        for name, constraint in self._constraints.items():
            initializer = _as_initializer(values[name])
            if constraint is not None:
                initializer = _unconstrained(values[name], self._bijector(name))
            own_shape = self._own_shape(name, shape)
            variables[name] = add_weight(name, own_shape, initializer)
        self._check_shape({k: v.value for k, v in variables.items()}, shape)
        return variables

    def _check_shape(self, parameters: Parameters, shape: Sizes) -> None:
        distribution = self.distribution(parameters)
        whole = (*distribution.batch_shape, *distribution.event_shape)
        # Axes of members come first.
        if tuple(whole[-len(shape) :]) != tuple(shape):
            raise ValueError(
                "The distribution must be over tensors of the weight's shape. "
                f"Received: {distribution!r} for a weight of shape {shape}, "
                f"posterior={self!r}"
            )

    def noise_shape(self, shape: Sizes) -> Sizes:
        return (2,)

    def distribution(self, parameters: Parameters) -> Distribution:
        """Returns q(w) as the distribution of TFP."""
        made = self.make(
            **{
                name: value if constraint is None else self._bijector(name)(value)
                for (name, value), constraint in zip(
                    parameters.items(), self._constraints.values(), strict=True
                )
            }
        )
        if not hasattr(made, "reparameterization_type"):
            raise ValueError(
                "`make` must return a distribution of TensorFlow Probability. "
                f"Received: {made!r} from make={self.make!r}"
            )
        return made

    def mean(self, parameters: Parameters, shape: Sizes) -> Tensor:
        return self._moment("mean", parameters)

    def variance(self, parameters: Parameters, shape: Sizes) -> Tensor:
        return self._moment("variance", parameters)

    def draw(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        """Returns w, [..., *shape]; the bits of the noise seed TFP's sampler."""
        noise = tf.convert_to_tensor(noise)

        def draw_one(arguments: tuple[Tensor, dict[str, Tensor]]) -> Tensor:
            bits, own = arguments
            sample = self.distribution(own).sample(seed=tf.bitcast(bits, tf.int32))
            return tf.cast(tf.ensure_shape(sample, shape), noise.dtype)

        leading_rank = len(noise.shape) - 1
        if leading_rank == 0:
            return draw_one((noise, dict(parameters)))
        leading = tf.shape(noise)[:-1]
        own_ranks = self._own_ranks(shape)
        spread = {}
        for name, value in parameters.items():
            own = tf.shape(value)[len(value.shape) - own_ranks[name] :]
            full = tf.broadcast_to(value, tf.concat([leading, own], axis=0))
            spread[name] = tf.reshape(full, tf.concat([[-1], own], axis=0))
        seeds = tf.reshape(noise, [-1, 2])
        draws = tf.map_fn(draw_one, (seeds, spread), fn_output_signature=noise.dtype)
        return tf.reshape(draws, tf.concat([leading, shape], axis=0))

    def perturb(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        draws = self.draw(parameters, noise, shape)
        return draws - self.mean(parameters, shape)

    def log_prob(self, parameters: Parameters, weights: Tensor, shape: Sizes) -> Tensor:
        distribution = self.distribution(parameters)
        batch_axes = shape[: len(shape) - len(distribution.event_shape)]
        return sum_over_weights(distribution.log_prob(weights), batch_axes)

    def _bijector(self, name: str) -> Any:
        return self._constraints[name].default_constraining_bijector_fn()

    def _own_shape(self, name: str, shape: Sizes) -> Sizes:
        """Returns the shape of the free parameter, which its constraint may change."""
        if self._constraints[name] is None:
            return shape
        constrained = self._constraints[name].shape_fn(shape)
        return tuple(self._bijector(name).inverse_event_shape(constrained))

    def _own_ranks(self, shape: Sizes) -> dict[str, int]:
        return {name: len(self._own_shape(name, shape)) for name in self._constraints}

    def _moment(self, name: str, parameters: Parameters) -> Any:
        distribution = self.distribution(parameters)
        try:
            moment = getattr(distribution, name)()
        except NotImplementedError as error:
            raise ValueError(
                f"TensorFlow Probability has no {name} of {distribution.name}: "
                "predictions that need it cannot be made; use a method that draws. "
                f"Received: posterior={self!r}"
            ) from error
        return tf.cast(moment, tf.float32)


_DEFAULTS = frozenset({"loc", "scale", "scale_diag", "scale_tril", "log_scale"})


def _is_distribution_class(make: Any) -> bool:
    return inspect.isclass(make) and hasattr(make, "parameter_properties")


def _as_initializer(value: Any) -> Any:
    if isinstance(value, Real):
        return keras.initializers.Constant(value)
    return keras.initializers.get(value)


def _unconstrained(value: Any, bijector: Any) -> Any:
    """Returns the initializer of the free parameter behind a constrained value."""
    import tensorflow_probability as tfp

    initializer = _as_initializer(value)
    if isinstance(bijector, tfp.bijectors.Identity):
        return initializer
    is_matrix = bijector.inverse_min_event_ndims == 2

    def initial_value(shape: Shape, dtype: DType = None) -> Any:
        shape = bijector.forward_event_shape(shape)
        start = tf.convert_to_tensor(initializer(shape, dtype=dtype))
        if is_matrix and isinstance(value, Real):
            start = tf.linalg.diag(tf.linalg.diag_part(start))
        return bijector.inverse(start)

    return initial_value


def _scratch_variable(
    name: str, shape: Shape, initializer: Initializer
) -> keras.Variable:
    return keras.Variable(initializer, shape=shape, dtype="float32", trainable=False)
