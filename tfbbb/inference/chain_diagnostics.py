"""Whether Markov chains agree, and how many independent draws they are worth."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from keras import tree
from scipy import special, stats

from tfbbb.inference.log_posterior import LogPosterior

# Rows whose outputs are compared between chains.
_COMPARED_ROWS = 64
_STATES_AT_ONCE = 128


def compared_chains(target: LogPosterior, draws: np.ndarray) -> dict[str, float | None]:
    """Returns R-hat and effective sample size in function and weight space.

    Args:
        target: What was sampled.
        draws: [draws, chains, D + L].
    """
    values = function_values(target, draws)
    weights = draws[..., : target.network.size]
    return {
        "r_hat": _figure(np.nanmax, r_hat(values)),
        "ess_bulk": _figure(np.nanmin, bulk_effective_size(values)),
        "r_hat_weights": _figure(np.nanmax, r_hat(weights)),
        "ess_bulk_weights": _figure(np.nanmin, bulk_effective_size(weights)),
    }


def function_values(target: LogPosterior, draws: np.ndarray) -> np.ndarray:
    """Returns the outputs for (at most 64) rows and the learned parameters of draws.

    Args:
        target: What was sampled.
        draws: [draws, chains, D + L].

    Returns:
        [draws, chains, rows * P + L].
    """
    count = min(_COMPARED_ROWS, target.num_rows)
    places = np.linspace(0, target.num_rows - 1, count).astype(int)
    x = tree.map_structure(lambda t: tf.gather(t, places), target.rows[0])
    states = draws.reshape(-1, draws.shape[-1])
    outputs = in_blocks(lambda z: target.outputs(z, x), states)
    values = outputs.reshape(*draws.shape[:2], -1)
    return np.concatenate([values, draws[..., target.network.size :]], axis=-1)


def in_blocks(function: Callable[[tf.Tensor], tf.Tensor], states: Any) -> np.ndarray:
    """Returns a function of states [K, D + L], of a bounded number of them at a time.

    Args:
        function: Returns a tensor [K, ...].
        states: The states.
    """
    compiled = tf.function(function, autograph=False, reduce_retracing=True)
    parts = [
        compiled(tf.constant(states[i : i + _STATES_AT_ONCE], tf.float32)).numpy()
        for i in range(0, len(states), _STATES_AT_ONCE)
    ]
    return np.concatenate(parts)


def _figure(reduce: Callable[[np.ndarray], Any], values: np.ndarray) -> float | None:
    """Returns one figure of all quantities that vary; None if none does."""
    return None if np.isnan(values).all() else float(reduce(values))


def r_hat(draws: np.ndarray) -> np.ndarray:
    """Returns the rank-normalised split R-hat of each quantity, [...].

    The chains are cut in halves, and all draws replaced by the normal quantiles of
    their ranks. With W the mean variance within the halves and B/n that of their means,

        R-hat = sqrt(((n - 1) / n * W + B / n) / W)

    The result is the larger one of the draws (do the chains agree in location?) and of
    their distances to the median (do they agree in scale?). Chains that agree have 1;
    above 1.01 they should run on (Vehtari et al. 2021, section 4). NaN for a quantity
    that is constant.

    Args:
        draws: [draws, chains, ...].
    """
    halves = _split(draws)
    median = np.median(halves, axis=(0, 1), keepdims=True)
    folded = np.abs(halves - median)
    both = [_plain_r_hat(_rank_normalized(values)) for values in (halves, folded)]
    return np.maximum(*both).reshape(draws.shape[2:])


def bulk_effective_size(draws: np.ndarray) -> np.ndarray:
    """Returns the number of independent draws that know each mean as well, [...].

    For S draws in all, with the autocorrelations rho_t of the rank-normalised halves of
    the chains, combined by the variances within and between (Vehtari et al. 2021,
    equations 10 to 13),

        S / (-1 + 2 sum_t (rho_2t + rho_2t+1))

    where the sum ends at the first negative pair and its terms do not grow (Geyer
    1992). At most S log10(S). NaN for a quantity that is constant.

    Args:
        draws: [draws, chains, ...].
    """
    z = _rank_normalized(_split(draws))
    length, chains = z.shape[:2]
    within, total = _variances(z)
    covariance = _autocovariance(z).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1.0 - (within - covariance) / total
    rho[0] = 1.0
    pairs = rho[: length // 2 * 2].reshape(length // 2, 2, -1).sum(axis=1)
    kept = np.logical_and.accumulate(pairs > 0.0, axis=0)
    pairs = np.where(kept, np.minimum.accumulate(pairs, axis=0), 0.0)
    size = length * chains
    least_time = 1.0 / np.log10(size)
    effective = size / np.maximum(-1.0 + 2.0 * pairs.sum(axis=0), least_time)
    effective[~(total > 0.0)] = np.nan
    return effective.reshape(draws.shape[2:])


def _split(draws: np.ndarray) -> np.ndarray:
    """Returns [draws, chains, ...] as [draws // 2, 2 * chains, quantities]."""
    half = len(draws) // 2
    if half < 2:
        raise ValueError(
            "The chains need at least four draws each to be compared. "
            f"Received: draws of shape {draws.shape}"
        )
    flat = np.asarray(draws, np.float64).reshape(*draws.shape[:2], -1)
    # The middle one of an odd number is left out.
    return np.concatenate([flat[:half], flat[-half:]], axis=1)


def _rank_normalized(values: np.ndarray) -> np.ndarray:
    """Returns the normal quantiles of ranks among all draws of a quantity."""
    together = values.reshape(-1, values.shape[2])
    ranks = stats.rankdata(together, axis=0)
    return special.ndtri((ranks - 0.375) / (len(together) + 0.25)).reshape(values.shape)


def _variances(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the variance within chains, and its sum with that between them."""
    length = len(values)
    within = values.var(axis=0, ddof=1).mean(axis=0)
    between = values.mean(axis=0).var(axis=0, ddof=1)
    return within, (length - 1) / length * within + between


def _plain_r_hat(values: np.ndarray) -> np.ndarray:
    within, total = _variances(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(total / within)


def _autocovariance(values: np.ndarray) -> np.ndarray:
    """Returns the autocovariance of each chain at lags 0 to n - 1."""
    length = len(values)
    spectrum = np.fft.rfft(values - values.mean(axis=0), n=2 * length, axis=0)
    power = np.fft.irfft(np.abs(spectrum) ** 2, n=2 * length, axis=0)[:length]
    return power / length
