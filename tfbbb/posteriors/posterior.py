"""The contract of a variational family."""

from collections.abc import Callable
from typing import Any

import keras

from tfbbb.strategy import Strategy

Variables = dict[str, keras.Variable]


class Posterior(Strategy):
    """A variational family q(w) over one weight tensor `w`.

    A posterior is a description and holds no variables: the layer that uses it does,
    and hands them to every method. All are float32, whatever the layer computes in.

    Attributes:
        factorised: Whether the weights are independent under q, which is what the
            `local` estimator needs.
        symmetric: Whether q is symmetric about its mean, weight by weight, which is
            what the `flipout` estimator needs.
    """

    factorised: bool = False
    symmetric: bool = False

    def add_variables(
        self,
        add_weight: Callable[..., keras.Variable],
        shape: tuple[int, ...],
        fan_in: int,
        mean_initializer: Any,
    ) -> Variables:
        """Creates the variational parameters of a weight of shape `shape`.

        Args:
            add_weight: `add_weight(name, shape, initializer)` creates one variable.
            shape: Shape of the weight tensor.
            fan_in: Number of inputs that one output unit sums over.
            mean_initializer: Keras initializer of the posterior mean.
        """
        raise NotImplementedError

    def mean(self, variables: Variables) -> Any:
        """Returns E[w], of the weight's shape."""
        raise NotImplementedError

    def variance(self, variables: Variables) -> Any:
        """Returns Var[w], element by element, of the weight's shape."""
        raise NotImplementedError

    def perturb(self, variables: Variables, noise: Any) -> Any:
        """Returns `w - E[w]` for standard normal `noise`, [..., *shape] as `noise`."""
        raise NotImplementedError

    def log_prob(self, variables: Variables, weights: Any) -> Any:
        """Returns log q(weights), summed over the weights: a scalar, in nats."""
        raise NotImplementedError
