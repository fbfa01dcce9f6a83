"""One weight tensor of a layer: its posterior, its prior and their variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tfbbb.base import noise
from tfbbb.base.batch_layout import of_member
from tfbbb.base.call_context import call_with, current_call
from tfbbb.base.lazy import keras, ops, tf
from tfbbb.base.types import ArrayLike, Initializer, Tensor
from tfbbb.bayes.posteriors.posterior import Posterior, Sizes
from tfbbb.bayes.priors.prior import Prior


class VariationalWeight:
    """A weight tensor `w` that is known only by its distribution q(w).

    With `members=K` there are K independent weight tensors, and every shape of `w` here
    has a leading axis [K, ...]. `size` counts the weights of one member, and `fan_in`
    the inputs that one output unit sums over (1 for a bias). `variables` are the
    parameters of q by name and `prior_variables` those of the prior, float32; `prior`
    is None for weights that are points without one.
    """

    def __init__(
        self,
        name: str,
        shape: Sizes,
        *,
        fan_in: int,
        posterior: Posterior,
        prior: Prior | None,
        mean_initializer: Initializer,
        add_weight: Callable[..., keras.Variable],
        members: int = 1,
        path: str = "",
    ):
        self.name = name
        self.shape = tuple(shape)
        self.size = math.prod(shape)
        self.fan_in = fan_in
        self.posterior = posterior
        self.prior = prior
        self._mean_initializer = mean_initializer
        self._add_weight = add_weight
        self._path = path or name
        self.set_members(members)

    def set_members(self, members: int) -> None:
        """Creates the variables again for another number of members."""
        self.members = members
        self.variables = self.posterior.add_variables(
            self._add_weight, self.shape, self.fan_in, self._mean_initializer
        )
        self.prior_variables = (
            self.prior.add_variables(
                self._add_weight, self.shape, self.fan_in, self._path
            )
            if self.prior is not None
            else {}
        )

    @property
    def all_variables(self) -> list[keras.Variable]:
        """The variables of the posterior, then those of the prior."""
        return [*self.variables.values(), *self.prior_variables.values()]

    def read_once(self) -> AbstractContextManager[None]:
        """Computes parameters, mean and variance once within the context.

        Do not assign variables or enter a graph within it.
        """
        return call_with(memos={**current_call().memos, id(self): {}})

    def _once(self, name: str, compute: Callable[[], Any]) -> Tensor:
        memo = current_call().memos.get(id(self))
        if memo is None:
            return compute()
        if name not in memo:
            memo[name] = compute()
        return memo[name]

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Values of the variational parameters by name."""
        return self._once("parameters", lambda: self._values(self.variables))

    @property
    def prior_parameters(self) -> dict[str, Tensor]:
        """Values of the prior's own variables by name."""
        return self._values(self.prior_variables)

    @property
    def mean(self) -> Tensor:
        """E[w] under q, of the weight's shape."""
        return self._once(
            "mean", lambda: self.posterior.mean(self.parameters, self.shape)
        )

    @property
    def variance(self) -> Tensor:
        """Var[w] under q, of the weight's shape."""
        return self._once(
            "variance", lambda: self.posterior.variance(self.parameters, self.shape)
        )

    def output_variance(self, inputs: Tensor) -> Tensor:
        """Returns Var[x @ w] of rows x, [(members,) rows, inputs], for a normal q."""
        if self.posterior.factorised:
            return tf.matmul(tf.square(inputs), self.variance)
        # Draws are linear in their noise: each entry of it adds the square of its part.
        own = self.posterior.noise_shape(self.shape)
        leading = [1] if self.members > 1 else []
        noise = tf.reshape(tf.eye(math.prod(own)), [*leading, -1, *own])
        parts = self.posterior.perturb(self._spread(noise), noise, self.shape)
        sums = tf.matmul(inputs[..., tf.newaxis, :, :], parts)
        return tf.reduce_sum(tf.square(sums), axis=-3)

    @property
    def stddev(self) -> Tensor:
        """Standard deviation of w under q, of the weight's shape."""
        return ops.sqrt(self.variance)

    def noise(self, seed: Tensor, samples: int = 1) -> Tensor:
        """Returns the noise of draws, [members, samples, ...], without axes of one."""
        leading = [n for n in (self.members, samples) if n > 1]
        return noise.normal(seed, (*leading, *self.posterior.noise_shape(self.shape)))

    def perturb(self, noise: Tensor) -> Tensor:
        """Returns `w - E[w]` of `noise`, [members * samples, *shape] or [*shape]."""
        parameters = self._spread(noise)
        return self._merged(self.posterior.perturb(parameters, noise, self.shape))

    def draw_from(self, noise: Tensor) -> Tensor:
        """Returns draws of w as a function of `noise`, in the shape of `perturb`."""
        parameters = self._spread(noise)
        return self._merged(self.posterior.draw(parameters, noise, self.shape))

    def draw(self, seed: Tensor, samples: int = 1) -> Tensor:
        """Returns draws of q, float32 [members * samples, *shape] or [*shape]."""
        return self.draw_from(self.noise(seed, samples))

    def log_prob(self, weights: Tensor) -> Tensor:
        """Returns log q of draws from `draw`, [members * samples] or a scalar."""
        weights = self._split(weights)
        parameters = self._spread_over(weights, len(self.shape))
        return _flat(self.posterior.log_prob(parameters, weights, self.shape))

    def prior_log_prob(self, weights: Tensor) -> Tensor:
        """Returns log p(weights) in nats, in the shapes of `log_prob`."""
        if self.prior is None:
            raise ValueError(
                "A weight without a prior has no prior density. "
                f"Received: weight={self.name!r}, prior=None"
            )
        weights = self._split(weights)
        axes = len(weights.shape) - len(self.shape)
        parameters = self._with_axes(self.prior.parameters(self), axes)
        return _flat(self.prior.log_prob(parameters, weights, self.shape, self.fan_in))

    def sum(self, values: ArrayLike) -> Tensor:
        """Returns `values` summed over the weights: a scalar, or one per member."""
        return tf.reduce_sum(values, axis=list(range(-len(self.shape), 0)))

    def _values(self, variables: dict[str, keras.Variable]) -> dict[str, Tensor]:
        return {
            name: of_member(tf.convert_to_tensor(variable), self.members)
            for name, variable in variables.items()
        }

    def _split(self, weights: Tensor) -> Tensor:
        # [members * samples, *shape] as [members, samples, *shape].
        if self.members == 1 or len(weights.shape) == len(self.shape):
            return weights
        return tf.reshape(weights, [self.members, -1, *self.shape])

    def _spread(self, noise: Tensor) -> dict[str, Tensor]:
        return self._spread_over(noise, len(self.posterior.noise_shape(self.shape)))

    def _spread_over(self, values: ArrayLike, rank: int) -> dict[str, Tensor]:
        return self._with_axes(self.parameters, len(values.shape) - rank)

    def _with_axes(self, parameters: Tensor, axes: int) -> dict[str, Tensor]:
        """Returns the parameters with an axis for samples after that of members."""
        if self.members == 1 or axes < 2:
            return dict(parameters)
        return {k: tf.expand_dims(value, 1) for k, value in parameters.items()}

    def _merged(self, draws: Tensor) -> Tensor:
        if len(draws.shape) <= len(self.shape) + 1:
            return draws
        return tf.reshape(draws, [-1, *self.shape])


def _flat(values: ArrayLike) -> Tensor:
    return tf.reshape(values, [-1]) if len(values.shape) > 1 else values
