"""The contract of a variational family."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from tfbbb.strategy import Strategy

AddWeight = Callable[..., keras.Variable]
Parameters = Mapping[str, Any]


class Posterior(Strategy):
    """A variational family q(w) over one weight tensor `w`.

    A posterior is a description and holds no variables: the layer that uses it does,
    and hands their values to every method as `parameters`, with the `shape` of w. All
    are float32, whatever the layer computes in.

    Parameters, noise and weights may carry leading axes (members of an ensemble,
    samples), which broadcast: a parameter is [..., *its own shape], w is
    [..., *shape].

    Attributes:
        factorised: Whether the weights are independent normals under q, which is what
            the `local` estimator needs.
        symmetric: Whether q is symmetric about its mean, weight by weight, which is
            what the `flipout` estimator needs.
        reparameterised: Whether draws have a gradient in the parameters. Without,
            only the `score_function` estimator can train them.
        deterministic: Whether q is a point: draws are all the same.
        has_density: Whether `log_prob` is defined.
    """

    factorised: bool = False
    symmetric: bool = False
    reparameterised: bool = True
    deterministic: bool = False
    has_density: bool = True

    def check_prior(self, prior: Strategy | None) -> None:
        """Raises ValueError for a prior with which q has no divergence to train on.

        Args:
            prior: A `tfbbb.priors.Prior`, or None for no prior.
        """
        if prior is None and not self.deterministic:
            raise ValueError(
                "Only a point has no prior (`posterior='point'`, maximum likelihood). "
                f"Received: prior=None, posterior={self!r}"
            )

    def add_variables(
        self,
        add_weight: AddWeight,
        shape: tuple[int, ...],
        fan_in: int,
        mean_initializer: Any,
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

    def mean(self, parameters: Parameters, shape: tuple[int, ...]) -> Any:
        """Returns E[w], [..., *shape]."""
        raise NotImplementedError

    def variance(self, parameters: Parameters, shape: tuple[int, ...]) -> Any:
        """Returns Var[w], element by element, [..., *shape]."""
        raise NotImplementedError

    def perturb(
        self, parameters: Parameters, noise: Any, shape: tuple[int, ...]
    ) -> Any:
        """Returns `w - E[w]`, [..., *shape], as a function of standard normal noise.

        Args:
            parameters: The parameters.
            noise: [..., *noise_shape(shape)].
            shape: Shape of the weight tensor.
        """
        raise NotImplementedError

    def draw(self, parameters: Parameters, noise: Any, shape: tuple[int, ...]) -> Any:
        """Returns w, [..., *shape], as a function of standard normal noise."""
        mean = self.mean(parameters, shape)
        return mean + self.perturb(parameters, noise, shape)

    def log_prob(
        self, parameters: Parameters, weights: Any, shape: tuple[int, ...]
    ) -> Any:
        """Returns log q(weights), summed over the weights, [...], in nats."""
        raise NotImplementedError

    def entropy(self, parameters: Parameters, shape: tuple[int, ...]) -> Any:
        """Returns E[-log q(w)], [...], in nats, where it has a closed form."""
        raise NotImplementedError


def sum_over_weights(values: Any, shape: tuple[int, ...]) -> Any:
    """Returns `values`, [..., *shape], summed over the weights, [...]."""
    return ops.sum(values, axis=tuple(range(-len(shape), 0)))


def flatten_weights(values: Any, shape: tuple[int, ...]) -> Any:
    """Returns `values`, [..., *shape], as [..., number of weights]."""
    return reshape_last_axes(values, len(shape), (math.prod(shape),))


def unflatten_weights(values: Any, shape: tuple[int, ...]) -> Any:
    """Returns `values`, [..., number of weights], as [..., *shape]."""
    return reshape_last_axes(values, 1, shape)


def reshape_last_axes(values: Any, count: int, shape: tuple[int, ...]) -> Any:
    """Returns `values` with its last `count` axes reshaped to `shape`."""
    values = tf.convert_to_tensor(values)
    leading = tf.shape(values)[: len(values.shape) - count]
    return tf.reshape(values, tf.concat([leading, shape], axis=0))
