"""Hamiltonian Monte Carlo."""

from dataclasses import dataclass

import tensorflow as tf

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import KernelResults, LogDensity, TransitionKernel
from tfbbb.inference.hamiltonian import DIVERGED, HamiltonianMethod


@dataclass(eq=False, repr=False)
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
        num_leapfrog_steps: Largest number of steps of a trajectory.

    Raises:
        ValueError: An argument is out of range, or there are fewer draws than members.
    """

    num_leapfrog_steps: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_integer("num_leapfrog_steps", self.num_leapfrog_steps)

    def kernel(self, log_density: LogDensity) -> TransitionKernel:
        import tensorflow_probability as tfp

        return tfp.mcmc.HamiltonianMonteCarlo(
            log_density,
            step_size=0.1,
            num_leapfrog_steps=self.num_leapfrog_steps,
        )

    def vary(self, results: KernelResults, seed: tf.Tensor) -> KernelResults:
        inner = with_random_length(results.inner_results, self.num_leapfrog_steps, seed)
        return results._replace(inner_results=inner)

    def trace(self, results: KernelResults) -> dict[str, tf.Tensor]:
        log_acceptance = results.log_accept_ratio
        steps = results.accepted_results.num_leapfrog_steps
        return {
            "log_acceptance": log_acceptance,
            "gradients": tf.fill(tf.shape(log_acceptance), steps),
            "diverged": ~(log_acceptance > DIVERGED),
        }


def with_random_length(
    results: KernelResults, most: int, seed: tf.Tensor
) -> KernelResults:
    """Returns results of a Hamiltonian kernel with a random number of leapfrog steps.

    Args:
        results: The results of `tfp.mcmc.HamiltonianMonteCarlo`.
        most: The largest number; 1 is the smallest.
        seed: int32 tensor of shape [2].
    """
    steps = tf.random.stateless_uniform([], seed, 1, most + 1, tf.int32)
    accepted = results.accepted_results._replace(num_leapfrog_steps=steps)
    return results._replace(accepted_results=accepted)
