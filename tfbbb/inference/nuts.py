"""The No-U-Turn sampler."""

from dataclasses import dataclass

import tensorflow as tf

from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import KernelResults, LogDensity, TransitionKernel
from tfbbb.inference.hamiltonian import HamiltonianMethod


@dataclass(eq=False, repr=False)
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
        max_tree_depth: Largest number of doublings of a trajectory.

    Raises:
        ValueError: An argument is out of range, or there are fewer draws than members.
    """

    target_acceptance: float = 0.8
    max_tree_depth: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_integer("max_tree_depth", self.max_tree_depth)

    def kernel(self, log_density: LogDensity) -> TransitionKernel:
        import tensorflow_probability as tfp

        return tfp.mcmc.NoUTurnSampler(
            log_density, step_size=0.1, max_tree_depth=self.max_tree_depth
        )

    def trace(self, results: KernelResults) -> dict[str, tf.Tensor]:
        return {
            "log_acceptance": results.log_accept_ratio,
            "gradients": results.leapfrogs_taken,
            "diverged": results.has_divergence,
        }
