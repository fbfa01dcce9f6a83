"""Parallel tempering."""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tfbbb.base.numbers import positive_integer, positive_number
from tfbbb.base.types import KernelResults, LogDensity, Tensor, TransitionKernel
from tfbbb.inference.hamiltonian import ALWAYS, DIVERGED, HamiltonianMethod
from tfbbb.inference.hmc import with_random_length
from tfbbb.inference.log_posterior import LogPosterior


@dataclass(eq=False, repr=False)
class ParallelTempering(HamiltonianMethod):
    """Samples a posterior of separate modes by parallel tempering (Geyer 1991).

    Each chain has R replicas at inverse temperatures beta_r from 1 to `smallest_beta`,
    of which replica r samples, by Hamiltonian Monte Carlo, from

        p_r(w) ~ p(D | w)^beta_r p(w)

    and neighbours exchange their states by a Metropolis step. Hot replicas cross
    between modes, and what they find reaches the replica with beta = 1, whose states
    are the draws. The temperatures are a geometric ladder.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> tempering = tfbbb.lab.inference.ParallelTempering(
    ...     num_draws=20, num_warmup=20, members=8, jit_compile=False
    ... )
    >>> len(tempering.fit(model, x, 3.0 * x, verbose=0).members)
    8

    See `tfbbb.inference.hamiltonian.HamiltonianMethod` for the diagnostics; here the
    mean acceptance is that of the replica with beta = 1.

    Args:
        num_replicas: Number R of temperatures, at least 2.
        smallest_beta: The inverse temperature of the hottest replica, below 1.
        num_leapfrog_steps: Largest number of steps of a trajectory, as for `HMC`.

    Raises:
        ValueError: An argument is out of range, or there are fewer draws than members.
    """

    num_replicas: int = 8
    smallest_beta: float = 0.01
    num_leapfrog_steps: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_integer("num_replicas", self.num_replicas)
        self.smallest_beta = positive_number("smallest_beta", self.smallest_beta)
        if self.num_replicas < 2 or self.smallest_beta >= 1.0:
            raise ValueError(
                "A ladder of temperatures needs at least two replicas, and "
                "`smallest_beta` below 1. Received: "
                f"num_replicas={self.num_replicas}, smallest_beta={self.smallest_beta}"
            )
        positive_integer("num_leapfrog_steps", self.num_leapfrog_steps)

    @property
    def _betas(self) -> np.ndarray:
        return np.geomspace(1.0, self.smallest_beta, self.num_replicas)

    def adapted(self, target: LogPosterior, scale: tf.Tensor) -> TransitionKernel:
        import tensorflow_probability as tfp

        def density(part: LogDensity) -> LogDensity:
            """Returns a log density of states / scale, [replicas, chains, D]."""

            def log_density(z: tf.Tensor) -> tf.Tensor:
                states = tf.reshape(z * scale, [-1, target.size])
                return tf.reshape(part(states), tf.shape(z)[:-1])

            return log_density

        start = 0.1 / np.sqrt(self._betas)[:, np.newaxis, np.newaxis]

        def moves(log_density: LogDensity) -> TransitionKernel:
            return tfp.mcmc.HamiltonianMonteCarlo(
                log_density,
                step_size=tf.constant(start, tf.float32),
                num_leapfrog_steps=self.num_leapfrog_steps,
                store_parameters_in_results=True,
            )

        exchange = tfp.mcmc.ReplicaExchangeMC(
            target_log_prob_fn=None,
            inverse_temperatures=tf.constant(self._betas, tf.float32),
            make_kernel_fn=moves,
            untempered_log_prob_fn=density(target.log_prior),
            tempered_log_prob_fn=density(target.log_likelihood),
        )
        return tfp.mcmc.DualAveragingStepSizeAdaptation(
            exchange,
            num_adaptation_steps=ALWAYS,
            target_accept_prob=self.target_acceptance,
            step_size_setter_fn=_with_step_size,
            step_size_getter_fn=lambda results: (
                results.post_swap_replica_results.accepted_results.step_size
            ),
            log_accept_prob_getter_fn=lambda results: tf.minimum(
                results.pre_swap_replica_results.log_accept_ratio, 0.0
            ),
        )

    def vary(self, results: KernelResults, seed: tf.Tensor) -> KernelResults:
        exchange = results.inner_results
        inner = with_random_length(
            exchange.post_swap_replica_results, self.num_leapfrog_steps, seed
        )
        exchange = exchange._replace(post_swap_replica_results=inner)
        return results._replace(inner_results=exchange)

    def trace(self, results: KernelResults) -> dict[str, tf.Tensor]:
        moved = results.pre_swap_replica_results
        log_acceptance = moved.log_accept_ratio[0]
        gradients = moved.accepted_results.num_leapfrog_steps * self.num_replicas
        return {
            "log_acceptance": log_acceptance,
            "gradients": tf.fill(tf.shape(log_acceptance), gradients),
            "diverged": ~(log_acceptance > DIVERGED),
        }


def _with_step_size(results: KernelResults, step_size: Tensor) -> KernelResults:
    inner = results.post_swap_replica_results
    accepted = inner.accepted_results._replace(step_size=step_size)
    return results._replace(
        post_swap_replica_results=inner._replace(accepted_results=accepted)
    )
