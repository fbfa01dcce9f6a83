"""Hamiltonian Monte Carlo."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfbbb.checked_numbers import positive_integer
from tfbbb.inference.hamiltonian import DIVERGED, HamiltonianMethod
from tfbbb.types import Tensor


class HMC(HamiltonianMethod):
    """Samples the posterior by Hamiltonian Monte Carlo (Duane et al. 1987; Neal 2011).

    A trajectory has between 1 and `num_leapfrog_steps` steps, each of which costs one
    gradient over all rows. The number is drawn anew for each trajectory: one of fixed
    length may end where it began. `NUTS` finds the number by itself.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> hmc = tfbbb.inference.HMC(
    ...     num_draws=20, num_warmup=20, members=8, jit_compile=False
    ... )
    >>> len(hmc.fit(model, x, 3.0 * x, verbose=0).members)
    8

    See `tfbbb.inference.hamiltonian.HamiltonianMethod` for the diagnostics.

    Args:
        num_draws: Number of draws of each chain after the warm-up.
        num_warmup: Number of transitions that adapt step size and scales.
        num_chains: Number of chains, which run side by side.
        members: Number K of draws to keep, of all chains together.
        num_leapfrog_steps: Largest number of steps of a trajectory.
        target_acceptance: Acceptance probability that the step size is adapted to.
        learned_scale: Standard deviation of the prior of the learned parameters of the
            likelihood, as for `NUTS`.
        map_steps: Steps of Adam from the start of each chain; 0 for none.
        jit_compile: Whether XLA compiles the sampler.
        seed: The same seed gives the same draws.

    Raises:
        ValueError: An argument is out of range, or there are fewer draws than members.
    """

    def __init__(
        self,
        num_draws: int = 1000,
        num_warmup: int = 500,
        num_chains: int = 4,
        members: int = 100,
        num_leapfrog_steps: int = 30,
        target_acceptance: float = 0.75,
        learned_scale: float = 2.0,
        map_steps: int = 500,
        jit_compile: bool = True,
        seed: int = 0,
    ):
        self._set(
            num_draws,
            num_warmup,
            num_chains,
            members,
            target_acceptance,
            learned_scale,
            map_steps,
            jit_compile,
            seed,
        )
        self.num_leapfrog_steps = positive_integer(
            "num_leapfrog_steps", num_leapfrog_steps
        )

    def kernel(self, log_density: Callable[[Tensor], Tensor]) -> Any:
        import tensorflow_probability as tfp

        return tfp.mcmc.HamiltonianMonteCarlo(
            log_density,
            step_size=0.1,
            num_leapfrog_steps=self.num_leapfrog_steps,
        )

    def vary(self, results: Any, seed: tf.Tensor) -> Any:
        inner = with_random_length(results.inner_results, self.num_leapfrog_steps, seed)
        return results._replace(inner_results=inner)

    def trace(self, results: Any) -> dict[str, tf.Tensor]:
        log_acceptance = results.log_accept_ratio
        steps = results.accepted_results.num_leapfrog_steps
        return {
            "log_acceptance": log_acceptance,
            "gradients": tf.fill(tf.shape(log_acceptance), steps),
            "diverged": ~(log_acceptance > DIVERGED),
        }


def with_random_length(results: Any, most: int, seed: tf.Tensor) -> Any:
    """Returns results of a Hamiltonian kernel with a random number of leapfrog steps.

    Args:
        results: The results of `tfp.mcmc.HamiltonianMonteCarlo`.
        most: The largest number; 1 is the smallest.
        seed: int32 tensor of shape [2].
    """
    steps = tf.random.stateless_uniform([], seed, 1, most + 1, tf.int32)
    accepted = results.accepted_results._replace(num_leapfrog_steps=steps)
    return results._replace(accepted_results=accepted)
