"""The base class of variational families q(w)."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from tfbbb.base.strategy import Strategy
from tfbbb.base.texts import snake_case
from tfbbb.base.types import (
    ArrayLike,
    Initializer,
    Tensor,
)
from tfbbb.bayes.families.posteriors import PosteriorFamily
from tfbbb.bayes.families.priors import PriorFamily

AddWeight = Callable[..., keras.Variable]
Parameters = Mapping[str, Any]


class Posterior(PosteriorFamily, Strategy):
    """A variational family q(w) over one weight tensor `w`.

    A posterior holds no variables: the layer holds them and passes their values to
    every method as `parameters`, with the `shape` of w. All values are float32,
    whatever the dtype of the layer.

    Parameters, noise and weights may have leading axes (members of an ensemble,
    samples), which broadcast: a parameter is [..., *its own shape], w is
    [..., *shape].

    The attributes of `tfbbb.families.posteriors.PosteriorFamily` state the properties
    of the family.
    """

    def check_prior(self, prior: PriorFamily | None) -> None:
        """Raises ValueError if training with this prior has no optimum.

        Args:
            prior: A `tfbbb.priors.Prior`, or None for no prior.
        """
        if self.has_optimum(prior):
            return
        if prior is None:
            raise ValueError(
                "Only a point has no prior (`posterior='point'`, maximum likelihood). "
                f"Received: prior=None, posterior={self!r}"
            )
        raise ValueError(
            f"The density of this prior has no upper bound, so the posterior "
            f"'{snake_case(type(self).__name__)}' has no optimum. Use e.g. 'normal', "
            "'laplace', 'student_t' or 'gamma_normal'. "
            f"Received: posterior={self!r}, prior={prior!r}"
        )

    def add_variables(
        self,
        add_weight: AddWeight,
        shape: tuple[int, ...],
        fan_in: int,
        mean_initializer: Initializer,
    ) -> dict[str, keras.Variable]:
        """Creates the variational parameters of a weight of shape `shape`.

        Args:
            add_weight: `add_weight(name, shape, initializer)` creates one variable.
            shape: Shape of the weight tensor.
            fan_in: Number of inputs that one output unit sums over.
            mean_initializer: Keras initializer of the posterior mean.
        """
        raise NotImplementedError

    def noise_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the shape of the standard normal noise behind one draw."""
        return shape

    def mean(self, parameters: Parameters, shape: tuple[int, ...]) -> Tensor:
        """Returns E[w], [..., *shape]."""
        raise NotImplementedError

    def variance(self, parameters: Parameters, shape: tuple[int, ...]) -> Tensor:
        """Returns Var[w], element by element, [..., *shape]."""
        raise NotImplementedError

    def perturb(
        self, parameters: Parameters, noise: Tensor, shape: tuple[int, ...]
    ) -> Tensor:
        """Returns `w - E[w]`, [..., *shape], as a function of standard normal noise.

        Args:
            parameters: The parameters.
            noise: [..., *noise_shape(shape)].
            shape: Shape of the weight tensor.
        """
        raise NotImplementedError

    def draw(
        self, parameters: Parameters, noise: Tensor, shape: tuple[int, ...]
    ) -> Tensor:
        """Returns w, [..., *shape], as a function of standard normal noise."""
        mean = self.mean(parameters, shape)
        return mean + self.perturb(parameters, noise, shape)

    def log_prob(
        self, parameters: Parameters, weights: Tensor, shape: tuple[int, ...]
    ) -> Tensor:
        """Returns log q(weights), summed over the weights, [...], in nats."""
        raise NotImplementedError

    def entropy(self, parameters: Parameters, shape: tuple[int, ...]) -> Tensor:
        """Returns E[-log q(w)], [...], in nats, if it has a closed form."""
        raise NotImplementedError


def sum_over_weights(values: ArrayLike, shape: tuple[int, ...]) -> Tensor:
    """Returns `values`, [..., *shape], summed over the weights, [...]."""
    return ops.sum(values, axis=tuple(range(-len(shape), 0)))


def flatten_weights(values: ArrayLike, shape: tuple[int, ...]) -> Tensor:
    """Returns `values`, [..., *shape], as [..., number of weights]."""
    return reshape_last_axes(values, len(shape), (math.prod(shape),))


def unflatten_weights(values: ArrayLike, shape: tuple[int, ...]) -> Tensor:
    """Returns `values`, [..., number of weights], as [..., *shape]."""
    return reshape_last_axes(values, 1, shape)


def reshape_last_axes(values: ArrayLike, count: int, shape: tuple[int, ...]) -> Tensor:
    """Returns `values` with its last `count` axes reshaped to `shape`."""
    values = tf.convert_to_tensor(values)
    leading = tf.shape(values)[: len(values.shape) - count]
    return tf.reshape(values, tf.concat([leading, shape], axis=0))
