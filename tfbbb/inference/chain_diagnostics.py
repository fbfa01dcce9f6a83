"""Whether Markov chains agree, and how many independent draws they are worth."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf
from keras import tree
from scipy import special, stats

from tfbbb.base.types import ArrayLike
from tfbbb.inference.log_posterior import LogPosterior

# Rows whose outputs are compared between chains.
_COMPARED_ROWS = 64
_STATES_AT_ONCE = 128


def compared_chains(target: LogPosterior, draws: np.ndarray) -> dict[str, float | None]:
    """Returns R-hat and effective sample size of draws, [draws, chains, D + L]."""
    values = function_values(target, draws)
    weights = draws[..., : target.network.size]
    return {
        "r_hat": _figure(np.nanmax, r_hat(values)),
        "ess_bulk": _figure(np.nanmin, bulk_effective_size(values)),
        "r_hat_weights": _figure(np.nanmax, r_hat(weights)),
        "ess_bulk_weights": _figure(np.nanmin, bulk_effective_size(weights)),
    }


def function_values(target: LogPosterior, draws: np.ndarray) -> np.ndarray:
    """Returns outputs of (at most 64) rows and learned parameters of draws."""
    count = min(_COMPARED_ROWS, target.num_rows)
    places = np.linspace(0, target.num_rows - 1, count).astype(int)
    x = tree.map_structure(lambda t: tf.gather(t, places), target.rows[0])
    states = draws.reshape(-1, draws.shape[-1])
    outputs = in_blocks(lambda z: target.outputs(z, x), states)
    values = outputs.reshape(*draws.shape[:2], -1)
    return np.concatenate([values, draws[..., target.network.size :]], axis=-1)


def in_blocks(
    function: Callable[[tf.Tensor], tf.Tensor], states: ArrayLike
) -> np.ndarray:
    """Returns a function of states [K, D + L], of some of them at a time."""
    compiled = tf.function(function, autograph=False, reduce_retracing=True)
    parts = [
        compiled(tf.constant(states[i : i + _STATES_AT_ONCE], tf.float32)).numpy()
        for i in range(0, len(states), _STATES_AT_ONCE)
    ]
    return np.concatenate(parts)


def _figure(reduce: Callable[[np.ndarray], float], values: np.ndarray) -> float | None:
    """Returns one figure of all quantities that vary; None if none does."""
    return None if np.isnan(values).all() else float(reduce(values))


@np.errstate(divide="ignore", invalid="ignore")
def r_hat(draws: np.ndarray) -> np.ndarray:
    """Returns the rank-normalised split R-hat of each quantity of [draws, chains, ...].

    The larger one of those of the draws (do the chains agree in location?) and of their
    distances to the median (in scale?): Vehtari et al. 2021, section 4. NaN for a
    constant.
    """
    from tensorflow_probability.substrates import numpy as tfp

    halves = _split(draws)
    n, m = halves.shape[:2]
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    ratios = [
        tfp.mcmc.potential_scale_reduction(_rank_normalized(values))
        for values in (halves, folded)
    ]
    # Those of Brooks and Gelman (1998), from which the total variance over W follows.
    return np.sqrt((np.maximum(*ratios) + (n - 1) / (m * n)) * m / (m + 1))


@np.errstate(divide="ignore", invalid="ignore")
def bulk_effective_size(draws: np.ndarray) -> np.ndarray:
    """Returns how many independent draws know the mean of [draws, chains, ...] as well.

    The one of the rank-normalised halves of the chains together (Vehtari et al. 2021,
    section 3), S log10(S) for S draws at most. NaN for a constant.
    """
    from tensorflow_probability.substrates import numpy as tfp

    # The same function for tensors warns of a cast at each call.
    size = tfp.mcmc.effective_sample_size(
        _rank_normalized(_split(draws)),
        filter_beyond_positive_pairs=True,
        cross_chain_dims=1,
    )
    count = 2 * (len(draws) // 2) * draws.shape[1]
    most = count * np.log10(count)
    # The sum of correlations below zero has a negative size.
    return np.where((size <= 0.0) | (size > most), most, size)


def _split(draws: np.ndarray) -> np.ndarray:
    """Returns [draws, chains, ...] as [draws // 2, 2 * chains, ...]."""
    half = len(draws) // 2
    if half < 2:
        raise ValueError(
            "The chains need at least four draws each to be compared. "
            f"Received: draws of shape {draws.shape}"
        )
    # The middle one of an odd number is left out.
    return np.concatenate([draws[:half], draws[-half:]], axis=1)


def _rank_normalized(values: np.ndarray) -> np.ndarray:
    """Returns the normal quantiles of ranks among all draws of a quantity."""
    together = values.reshape(-1, *values.shape[2:])
    ranks = stats.rankdata(together, axis=0)
    return special.ndtri((ranks - 0.375) / (len(together) + 0.25)).reshape(values.shape)
