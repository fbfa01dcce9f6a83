"""Samplers that step along gradients of minibatches: SGLD and SGHMC."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.noise import fold, normal
from tfbbb.base.numbers import fraction, int32, positive_integer, positive_number
from tfbbb.inference.log_posterior import LogPosterior
from tfbbb.inference.posterior_sampler import PosteriorSampler


@dataclass(eq=False, repr=False)
class StochasticGradientMCMC(PosteriorSampler):
    """Langevin dynamics on minibatches, with cyclical steps (Zhang et al. 2020).

    At step k of a cycle of M steps, the step size is

        epsilon = (learning_rate / N) (1 + cos(pi k / M)) / 2

    Each cycle begins with large steps, which reach another mode, and without noise in
    its first part (`exploration`). In the rest it samples; the draws are kept at equal
    distances there. There is no test of acceptance, so the draws are from the posterior
    only in the limit of small steps.

    The result has `point` posteriors with `members = num_chains * num_cycles *
    draws_per_cycle`, each with its own noise. All chains run as one vectorised graph,
    on the same minibatches, from independent starts.

    A step is that of `SGHMC`, whose velocity starts each cycle at 0; with the friction
    1 it is that of `SGLD`.

    Args:
        num_chains: Number of chains.
        num_cycles: Number of cycles of each chain.
        steps_per_cycle: Number of steps of a cycle.
        draws_per_cycle: Number of draws of a chain to keep in each cycle.
        exploration: Share of a cycle without noise, which keeps no draws.
        batch_size: Rows of a step, drawn with replacement; all rows if it is N or more.
        learning_rate: Size of the first step of a cycle, for the mean loss of a row.
        learned_scale: Standard deviation of the prior of the likelihood's learned
            parameters, as for `NUTS`.
        seed: The same seed gives the same draws.

    Raises:
        ValueError: An argument is out of range.
    """

    num_chains: int = 4
    num_cycles: int = 5
    steps_per_cycle: int = 1000
    draws_per_cycle: int = 5
    exploration: float = 0.5
    batch_size: int = 32
    learning_rate: float = 0.01
    learned_scale: float = 2.0
    seed: int = 0
    friction = 1.0

    def __post_init__(self) -> None:
        for name in (
            "num_chains",
            "num_cycles",
            "steps_per_cycle",
            "draws_per_cycle",
            "batch_size",
        ):
            positive_integer(name, getattr(self, name))
        self.exploration = fraction("exploration", self.exploration)
        sampling = self.steps_per_cycle * (1.0 - self.exploration)
        if self.draws_per_cycle > sampling:
            raise ValueError(
                "A cycle has fewer sampling steps than draws to keep. Received: "
                f"draws_per_cycle={self.draws_per_cycle}, {math.floor(sampling)} steps"
            )
        self.learning_rate = positive_number("learning_rate", self.learning_rate)
        self.learned_scale = positive_number("learned_scale", self.learned_scale)
        self.seed = int32("seed", self.seed, least=0)

    def sample(
        self, target: LogPosterior, verbose: int | str = 0
    ) -> tuple[np.ndarray, dict[str, float | None]]:
        steps = self.steps_per_cycle
        first = math.floor(self.exploration * steps)
        ends = np.linspace(first, steps, self.draws_per_cycle + 1).round().astype(int)
        progress = self._progress(self.num_cycles * steps, verbose, "step")
        advance = self._advance(target)
        states = tf.constant(target.starts(self.num_chains, self.seed), tf.float32)
        draws = []
        for cycle in range(self.num_cycles):
            velocity = tf.zeros_like(states)
            seed = fold(tf.constant([self.seed, 0]), cycle)
            begin = 0
            for end in map(int, [first, *ends[1:]] if first else ends[1:]):
                states, velocity = advance(
                    states, velocity, tf.constant(begin), tf.constant(end), seed
                )
                if end > first:
                    draws.append(states.numpy())
                progress.add(end - begin)
                begin = end
            if not np.isfinite(states).all():
                raise FloatingPointError(
                    "The weights are not finite: the steps are too large. Use a "
                    "smaller learning rate, or start at a trained model. "
                    f"Received: learning_rate={self.learning_rate}"
                )
        return np.stack(draws), {}

    def _advance(
        self, target: LogPosterior
    ) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
        """Returns the compiled function that takes the steps of a part of a cycle."""
        num_rows, steps = target.num_rows, self.steps_per_cycle
        batch_size = min(self.batch_size, num_rows)
        x, y, weights = target.rows

        def gradient(states: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
            rows = tf.random.stateless_uniform(
                [batch_size], fold(seed, 0), 0, num_rows, tf.int32
            )
            if batch_size == num_rows:
                rows = tf.range(num_rows)
            batch = tree.map_structure(
                lambda tensor: tf.gather(tensor, rows), (x, y, weights)
            )
            with tf.GradientTape() as tape:
                tape.watch(states)
                log_density = target.log_prior(states)
                log_likelihood = target.log_likelihood(states, batch)
                log_density += num_rows / batch_size * log_likelihood
            return tape.gradient(log_density, states)

        def move(
            k: tf.Tensor, states: tf.Tensor, velocity: tf.Tensor, seed: tf.Tensor
        ) -> tuple[tf.Tensor, ...]:
            place = tf.cast(k, tf.float32) / steps
            epsilon = 0.5 * self.learning_rate / num_rows
            epsilon *= 1.0 + tf.cos(math.pi * place)
            own = fold(seed, k)
            samples = tf.cast(place >= self.exploration, tf.float32)
            noise = samples * normal(fold(own, 1), (self.num_chains, target.size))
            velocity = (1.0 - self.friction) * velocity + epsilon * gradient(
                states, own
            )
            velocity += tf.sqrt(2.0 * self.friction * epsilon) * noise
            return k + 1, states + velocity, velocity, seed

        @tf.function(autograph=False)
        def advance(
            states: tf.Tensor,
            velocity: tf.Tensor,
            begin: tf.Tensor,
            end: tf.Tensor,
            seed: tf.Tensor,
        ) -> tuple[tf.Tensor, tf.Tensor]:
            _, states, velocity, _ = tf.while_loop(
                lambda k, *_: k < end, move, (begin, states, velocity, seed)
            )
            return states, velocity

        return advance


class SGLD(StochasticGradientMCMC):
    """Stochastic gradient Langevin dynamics (Welling and Teh 2011), with cycles.

        w <- w + epsilon grad log p(w | D) + sqrt(2 epsilon) xi,   xi ~ N(0, I)

    with the gradient of a minibatch, scaled to all N rows. The step size follows
    cyclical cosines (Zhang et al. 2020).

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> sgld = tfbbb.inference.SGLD(num_chains=2, num_cycles=2, steps_per_cycle=50)
    >>> len(sgld.fit(model, x, 3.0 * x, verbose=0).members)
    20
    """


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
