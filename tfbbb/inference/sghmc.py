"""Stochastic gradient Hamiltonian Monte Carlo."""

import tensorflow as tf

from tfbbb.checked_numbers import positive_number
from tfbbb.inference.stochastic_gradient_mcmc import StochasticGradientMCMC


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
        num_chains: Number of chains.
        num_cycles: Number of cycles of each chain.
        steps_per_cycle: Number of steps of a cycle.
        draws_per_cycle: Number of draws of a chain to keep in each cycle.
        exploration: Share of a cycle without noise, which keeps no draws.
        batch_size: Rows of a step, drawn with replacement; all rows if it is N or more.
        learning_rate: Size of the first step of a cycle, for the mean loss of a row.
        friction: Share of the velocity that a step takes away, at most 1.
        learned_scale: Standard deviation of the prior of the likelihood's learned
            parameters, as for `NUTS`.
        seed: The same seed gives the same draws.

    Raises:
        ValueError: An argument is out of range.
    """

    def __init__(
        self,
        num_chains: int = 4,
        num_cycles: int = 5,
        steps_per_cycle: int = 1000,
        draws_per_cycle: int = 5,
        exploration: float = 0.5,
        batch_size: int = 32,
        learning_rate: float = 0.001,
        friction: float = 0.1,
        learned_scale: float = 2.0,
        seed: int = 0,
    ):
        super().__init__(
            num_chains,
            num_cycles,
            steps_per_cycle,
            draws_per_cycle,
            exploration,
            batch_size,
            learning_rate,
            learned_scale,
            seed,
        )
        self.friction = positive_number("friction", friction)
        if self.friction > 1.0:
            raise ValueError(
                f"`friction` must be at most 1. Received: friction={friction!r}"
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
