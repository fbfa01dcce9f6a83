"""The No-U-Turn sampler."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfbbb.checked_numbers import positive_integer
from tfbbb.inference.hamiltonian import HamiltonianMethod
from tfbbb.types import Tensor


class NUTS(HamiltonianMethod):
    """Samples the posterior by the No-U-Turn sampler (Hoffman and Gelman 2014).

    Trajectories of Hamiltonian dynamics double in length until they turn back, and the
    next draw is one of their points. The draws are from the exact posterior, once the
    chains have converged: the reference for every other method. Suits networks of some
    thousand weights and some thousand rows.

    The prior of the likelihood's learned parameters, such as the noise before its
    softplus, is `N(a_0, learned_scale^2)` around their values a_0 before any training.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> nuts = tfbbb.inference.NUTS(
    ...     num_draws=20, num_warmup=20, members=8, jit_compile=False
    ... )
    >>> sampled = nuts.fit(model, x, 3.0 * x, verbose=0)
    >>> len(sampled.members)
    8
    >>> sampled.predictive(x).mean.shape
    (20, 1)

    See `tfbbb.inference.hamiltonian.HamiltonianMethod` for the diagnostics.

    Args:
        num_draws: Number of draws of each chain after the warm-up.
        num_warmup: Number of transitions that adapt step size and scales.
        num_chains: Number of chains, which run side by side.
        members: Number K of draws to keep, of all chains together.
        target_acceptance: Acceptance probability that the step size is adapted to;
            a higher one takes smaller steps.
        max_tree_depth: Largest number of doublings of a trajectory.
        learned_scale: Standard deviation of the prior of the learned parameters.
        map_steps: Steps of Adam from the start of each chain; 0 for none.
        jit_compile: Whether XLA compiles the sampler. This takes some ten seconds once,
            and makes each step of a small network several times faster.
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
        target_acceptance: float = 0.8,
        max_tree_depth: int = 10,
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
        self.max_tree_depth = positive_integer("max_tree_depth", max_tree_depth)

    def kernel(self, log_density: Callable[[Tensor], Tensor]) -> Any:
        import tensorflow_probability as tfp

        return tfp.mcmc.NoUTurnSampler(
            log_density, step_size=0.1, max_tree_depth=self.max_tree_depth
        )

    def trace(self, results: Any) -> dict[str, tf.Tensor]:
        return {
            "log_acceptance": results.log_accept_ratio,
            "gradients": results.leapfrogs_taken,
            "diverged": results.has_divergence,
        }
