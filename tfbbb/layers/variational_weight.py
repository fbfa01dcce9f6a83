"""One weight tensor of a layer: its posterior, its prior and its variables."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from tfbbb import noise
from tfbbb.posteriors import Posterior
from tfbbb.priors import Prior

if TYPE_CHECKING:
    import tensorflow_probability as tfp


class VariationalWeight:
    """A weight tensor `w` that is known only by its distribution q(w).

    Attributes:
        name: Name within the layer, e.g. `"kernel"`.
        shape: Shape of `w`.
        size: Number of weights.
        fan_in: Number of inputs that one output unit sums over (1 for a bias).
        posterior: The family of q(w).
        prior: The prior p(w).
        variables: The variational parameters by name, float32.
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        *,
        fan_in: int,
        posterior: Posterior,
        prior: Prior,
        mean_initializer: Any,
        add_weight: Callable[..., keras.Variable],
    ):
        self.name = name
        self.shape = tuple(shape)
        self.size = math.prod(shape)
        self.fan_in = fan_in
        self.posterior = posterior
        self.prior = prior
        self.variables = posterior.add_variables(
            add_weight, self.shape, fan_in, mean_initializer
        )

    @property
    def mean(self) -> Any:
        """E[w] under q, of the weight's shape."""
        return self.posterior.mean(self.variables)

    @property
    def variance(self) -> Any:
        """Var[w] under q, of the weight's shape."""
        return self.posterior.variance(self.variables)

    @property
    def stddev(self) -> Any:
        """Standard deviation of w under q, of the weight's shape."""
        return ops.sqrt(self.variance)

    @property
    def distribution(self) -> "tfp.distributions.Distribution":
        """q(w) as a distribution of TensorFlow Probability."""
        import tensorflow_probability as tfp

        normal = tfp.distributions.Normal(self.mean, self.stddev)
        return tfp.distributions.Independent(normal, len(self.shape))

    def perturb(self, standard_normal: Any) -> Any:
        """Returns `w - E[w]` for standard normal noise, [..., *shape] as the noise."""
        return self.posterior.perturb(self.variables, standard_normal)

    def draw(self, seed: Any) -> Any:
        """Returns one draw of `w` from q, float32; the same for the same seed."""
        return self.mean + self.perturb(noise.normal(seed, self.shape))

    def log_prob(self, weights: Any) -> Any:
        """Returns log q(weights), a scalar in nats."""
        return self.posterior.log_prob(self.variables, weights)
