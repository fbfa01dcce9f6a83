"""Stochastic gradient Hamiltonian Monte Carlo."""

from dataclasses import dataclass

import tensorflow as tf

from tfbbb.base.numbers import positive_number
from tfbbb.inference.stochastic_gradient_mcmc import StochasticGradientMCMC


@dataclass(eq=False, repr=False)
class SGHMC(StochasticGradientMCMC):
    """Stochastic gradient Hamiltonian Monte Carlo (Chen et al. 2014), with cycles.

        v <- (1 - friction) v + epsilon grad log p(w | D)
             + sqrt(2 friction epsilon) xi,   xi ~ N(0, I)
        w <- w + v

    with the gradient of a minibatch, scaled to all N rows: gradient descent with the
    momentum `1 - friction`, and noise. The step size follows cyclical cosines (Zhang et
    al. 2020).

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> sghmc = tfbbb.inference.SGHMC(num_chains=2, num_cycles=2, steps_per_cycle=50)
    >>> len(sghmc.fit(model, x, 3.0 * x, verbose=0).members)
    20

    Args:
        friction: Share of the velocity that a step takes away, at most 1.

    Raises:
        ValueError: An argument is out of range.
    """

    learning_rate: float = 0.001
    friction: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.friction = positive_number("friction", self.friction)
        if self.friction > 1.0:
            raise ValueError(
                f"`friction` must be at most 1. Received: friction={self.friction!r}"
            )

    def step(
        self,
        states: tf.Tensor,
        velocity: tf.Tensor,
        gradient: tf.Tensor,
        epsilon: tf.Tensor,
        noise: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        velocity = (1.0 - self.friction) * velocity + epsilon * gradient
        velocity += tf.sqrt(2.0 * self.friction * epsilon) * noise
        return states + velocity, velocity
