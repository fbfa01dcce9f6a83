"""The No-U-Turn sampler."""

import time
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.noise import fold
from tfbbb.base.numbers import int32, positive_integer, positive_number
from tfbbb.base.types import KernelResults, Tensor, TransitionKernel
from tfbbb.inference.log_posterior import LogPosterior
from tfbbb.inference.posterior_sampler import PosteriorSampler
from tfbbb.model.optimizers import Adam

# Steps after which the adaptation of the step size would end by itself.
_ALWAYS = 2**30
# Transitions of one compiled call: often enough for a progress bar.
_BLOCK = 50
# The figures of one transition, by their names in `tfp.mcmc.NoUTurnSampler`.
_TRACED = ("log_accept_ratio", "leapfrogs_taken", "has_divergence")
# Shares of the warm-up after which the scales are estimated anew; the last part adapts
# the step size alone. Each estimate doubles the draws of the one before.
_WINDOWS = (0.1, 0.2, 0.4, 0.9)
# The draws that the scales known before are worth in a new estimate.
_DRAWS_OF_KNOWN_SCALE = 50


@dataclass(eq=False, repr=False)
class NUTS(PosteriorSampler):
    """Samples the posterior by the No-U-Turn sampler (Hoffman and Gelman 2014).

    Trajectories of Hamiltonian dynamics double in length until they turn back, and the
    next draw is one of their points. The draws are from the exact posterior, once the
    chains have converged: the reference for every other method. Suits networks of some
    thousand weights and some thousand rows.

    The result has `point` posteriors with `members=K`: K draws, evenly spaced over all
    chains, each with its own noise. All chains run as one vectorised graph over all
    rows. They start at independent networks, which `map_steps` steps of Adam lead to
    high density. In the warm-up, dual averaging finds the step size, and the standard
    deviations of the draws become the scales of the weights; the chains share both.

    The diagnostics of the result compare the chains in two ways. The weights of a
    network have symmetries, so chains that agree in all predictions may be far apart in
    weights; `r_hat` and `ess_bulk` are of the outputs of (at most 64) training rows and
    of the learned noise, and `r_hat_weights` and `ess_bulk_weights` of the weights.

    - `r_hat`: the largest rank-normalised split R-hat; 1.01 or less is good.
    - `ess_bulk`: the smallest bulk effective sample size.
    - `acceptance`: the mean acceptance probability.
    - `divergences`: the number of transitions whose energy error diverged.
    - `step_size`, `gradients_per_draw`, `warmup_seconds` (with compilation),
      `sampling_seconds`, and `sampling_processor_seconds` of all threads.

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

    Args:
        num_draws: Number of draws of each chain after the warm-up.
        num_warmup: Number of transitions that adapt step size and scales.
        num_chains: Number of chains, which run side by side.
        members: Number K of draws to keep, of all chains together.
        target_acceptance: Acceptance probability that the step size is adapted to;
            a higher one takes smaller steps.
        learned_scale: Standard deviation of the normal prior of the likelihood's
            learned parameters, such as the noise before its softplus, around their
            values before any training.
        map_steps: Steps of Adam from the start of each chain; 0 for none.
        jit_compile: Whether XLA compiles the sampler. This takes some ten seconds once,
            and makes each step of a small network several times faster.
        seed: The same seed gives the same draws.
        max_tree_depth: Largest number of doublings of a trajectory.

    Raises:
        ValueError: An argument is out of range, or there are fewer draws than members.
    """

    num_draws: int = 1000
    num_warmup: int = 500
    num_chains: int = 4
    members: int = 100
    target_acceptance: float = 0.8
    learned_scale: float = 2.0
    map_steps: int = 500
    jit_compile: bool = True
    seed: int = 0
    max_tree_depth: int = 10

    def __post_init__(self) -> None:
        counts = ("num_draws", "num_warmup", "num_chains", "members", "max_tree_depth")
        for name in counts:
            positive_integer(name, getattr(self, name))
        if self.members > self.num_draws * self.num_chains:
            raise ValueError(
                "There are fewer draws than `members` to keep. Received: "
                f"members={self.members}, num_draws={self.num_draws}, "
                f"num_chains={self.num_chains}"
            )
        if self.num_draws < 4:
            raise ValueError(
                "`num_draws` must be at least 4, for chains to be compared. "
                f"Received: num_draws={self.num_draws}"
            )
        self.target_acceptance = positive_number(
            "target_acceptance", self.target_acceptance
        )
        if self.target_acceptance >= 1.0:
            raise ValueError(
                "`target_acceptance` must be between 0 and 1. "
                f"Received: target_acceptance={self.target_acceptance!r}"
            )
        self.learned_scale = positive_number("learned_scale", self.learned_scale)
        self.map_steps = int32("map_steps", self.map_steps, least=0)
        self.jit_compile = bool(self.jit_compile)
        self.seed = int32("seed", self.seed, least=0)

    def kernel(self, target: LogPosterior, scale: tf.Tensor) -> TransitionKernel:
        """Returns the kernel of `z = state / scale`, which adapts its step size."""
        import tensorflow_probability as tfp

        sampler = tfp.mcmc.NoUTurnSampler(
            lambda z: target(z * scale),
            step_size=0.1,
            max_tree_depth=self.max_tree_depth,
        )
        return tfp.mcmc.DualAveragingStepSizeAdaptation(
            sampler,
            num_adaptation_steps=_ALWAYS,
            target_accept_prob=self.target_acceptance,
        )

    def _members(self, draws: np.ndarray) -> np.ndarray:
        chosen = np.linspace(0, len(draws) - 1, self.members)
        return draws[chosen.round().astype(int)]

    def sample(
        self, target: LogPosterior, verbose: int | str = 0
    ) -> tuple[np.ndarray, dict[str, float | None]]:
        progress = self._progress(self.num_warmup + self.num_draws, verbose, "draw")
        begin = time.perf_counter()
        chains = _Chains(self, target, progress)
        chains.warm_up(self.num_warmup)
        warm, warm_processor = time.perf_counter(), time.process_time()
        draws, traces = chains.run(self.num_draws)
        end, end_processor = time.perf_counter(), time.process_time()
        figures: dict[str, float | None] = {
            "acceptance": float(
                np.exp(np.minimum(traces["log_accept_ratio"], 0)).mean()
            ),
            "divergences": int(traces["has_divergence"].sum()),
            "step_size": chains.step_size,
            "gradients_per_draw": float(traces["leapfrogs_taken"].mean()),
            "warmup_seconds": warm - begin,
            "sampling_seconds": end - warm,
            "sampling_processor_seconds": end_processor - warm_processor,
        }
        return draws, figures


class _Chains:
    """The chains of one run, and the compiled functions that move them.

    The kernel moves `z = state / scale`, whose directions all have about the same
    spread, so that one step size fits them all.
    """

    def __init__(
        self,
        method: NUTS,
        target: LogPosterior,
        progress: keras.utils.Progbar,
    ):
        self._progress = progress
        self._seed = tf.constant([method.seed, 0])
        self._blocks = 0
        self._scale = tf.constant(target.prior_scale(), tf.float32)
        starts = tf.constant(target.starts(method.num_chains, method.seed), tf.float32)
        self._states = starts
        if method.map_steps:
            self._states = _ascended(target, starts, method.map_steps)

        @tf.function(autograph=False)
        def start(states: tf.Tensor, scale: tf.Tensor) -> KernelResults:
            return method.kernel(target, scale).bootstrap_results(states / scale)

        @tf.function(autograph=False, jit_compile=method.jit_compile)
        def block(
            states: tf.Tensor,
            results: KernelResults,
            scale: tf.Tensor,
            count: tf.Tensor,
            seed: tf.Tensor,
        ) -> tuple[Tensor, KernelResults, Tensor, dict[str, Tensor]]:
            moving = method.kernel(target, scale)

            def move(
                i: Tensor,
                z: Tensor,
                results: KernelResults,
                kept: tf.TensorArray,
                traces: dict[str, tf.TensorArray],
            ) -> tuple[Tensor, ...]:
                z, results = moving.one_step(z, results, seed=fold(seed, i, 1))
                traces = {
                    name: array.write(
                        i, tf.cast(getattr(results.inner_results, name), tf.float32)
                    )
                    for name, array in traces.items()
                }
                return i + 1, z, results, kept.write(i, z), traces

            def array(*shape: int) -> tf.TensorArray:
                return tf.TensorArray(tf.float32, _BLOCK, element_shape=shape)

            _, z, results, kept, traces = tf.while_loop(
                lambda i, *_: i < count,
                move,
                (
                    0,
                    states / scale,
                    results,
                    array(*states.shape),
                    {name: array(method.num_chains) for name in _TRACED},
                ),
            )
            stacked = {name: array.stack() for name, array in traces.items()}
            return z * scale, results, kept.stack() * scale, stacked

        self._start, self._block = start, block
        self._results = start(self._states, self._scale)

    @property
    def step_size(self) -> float:
        """The step size of the next transition, in units of the scales."""
        return float(np.mean(self._results.new_step_size))

    def warm_up(self, count: int) -> None:
        """Moves the chains `count` times, adapting scales and step size."""
        ends = [round(share * count) for share in _WINDOWS]
        for i, (first, last) in enumerate(zip([0, *ends], [*ends, count], strict=True)):
            if i > 0:
                self._restart()
            if last == first:
                continue
            draws, _ = self.run(last - first)
            # The first draws are far from the posterior, and the last estimate stays.
            if 0 < i < len(_WINDOWS):
                self._scale = _scales(draws, self._scale)
        self._freeze()

    def run(self, count: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Returns the next states, [count, chains, D + L], and their figures."""
        draws, traces = [], []
        for first in range(0, count, _BLOCK):
            size = min(_BLOCK, count - first)
            seed = fold(self._seed, self._blocks)
            self._blocks += 1
            self._states, self._results, kept, traced = self._block(
                self._states, self._results, self._scale, tf.constant(size), seed
            )
            draws.append(kept.numpy()[:size])
            traces.append(
                {name: value.numpy()[:size] for name, value in traced.items()}
            )
            self._progress.add(size)
        joined = {name: np.concatenate([t[name] for t in traces]) for name in traces[0]}
        return np.concatenate(draws), joined

    def _restart(self) -> None:
        """Starts the adaptation of the step size anew, for the present scales."""
        step_size = self._results.new_step_size
        fresh = self._start(self._states, self._scale)
        # Hoffman and Gelman 2014, section 3.2: towards ten times the present one.
        targets = tf.nest.map_structure(lambda s: tf.math.log(10.0 * s), [step_size])
        self._results = fresh._replace(
            new_step_size=step_size, log_shrinkage_target=targets
        )

    def _freeze(self) -> None:
        """Ends the adaptation at the averaged step size."""
        (log_step_size,) = self._results.log_averaging_step
        self._results = self._results._replace(
            new_step_size=tf.exp(log_step_size),
            num_adaptation_steps=tf.zeros([], tf.int32),
        )


def _scales(draws: np.ndarray, known: tf.Tensor) -> tf.Tensor:
    """Returns the standard deviation of each entry within the chains, [D + L].

    The fewer draws there are, the closer the logarithms stay to those of `known`.
    """
    share = draws.shape[0] * draws.shape[1]
    share = share / (share + _DRAWS_OF_KNOWN_SCALE)
    found = np.sqrt(draws.astype(np.float64).var(axis=0).mean(axis=0))
    logs = share * np.log(np.maximum(found, 1e-8)) + (1.0 - share) * np.log(known)
    return tf.constant(np.exp(logs), tf.float32)


def _ascended(target: LogPosterior, states: tf.Tensor, steps: int) -> tf.Tensor:
    """Returns the states after so many steps of Adam up the log density.

    The learned parameters stay: together with the noise, the density of a network that
    can fit every row has its maximum at no noise, far from the draws.
    """
    moves = tf.constant([1.0] * target.network.size + [0.0] * sum(target.learned_sizes))
    variable = keras.Variable(states)
    schedule = keras.optimizers.schedules.CosineDecay(0.02, steps)
    optimizer = Adam(schedule)
    optimizer.build([variable])

    def step(i: tf.Tensor) -> tuple[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = -tf.reduce_sum(target(variable.value))
        gradient = tape.gradient(loss, variable.value)
        optimizer.apply([gradient * moves], [variable])
        return (i + 1,)

    @tf.function(autograph=False)
    def climb() -> None:
        tf.while_loop(lambda i: i < steps, step, (tf.constant(0),))

    climb.get_concrete_function()()
    return tf.convert_to_tensor(variable)
