"""How far boxes reach that hold all targets of a row, by draws of y."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tfbbb.base import array_ops as ops

if TYPE_CHECKING:
    from tfbbb.bayes.likelihoods import Likelihood
    from tfbbb.prediction.mixture import Mixture

# The level of a box of 90 % has a standard error of 0.7 % in each row.
_DRAWS = 2000
_ROWS_AT_A_TIME = 128


def joint_reach(recalibration: Any, mixture: Mixture, levels: np.ndarray) -> np.ndarray:
    """Returns the score s of boxes that hold all targets, [rows, Q, ..., 1].

    A box of a level lies between the quantiles of `Phi(-s)` and `Phi(s)` of each
    target: for k independent targets `2 Phi(s) - 1 = level^(1/k)`, for targets that
    are functions of each other the level itself. The draws, whose noise is the same for
    all rows, are compared by their ranks, in which the margins do not count.
    """
    outputs, likelihood = np.asarray(mixture.outputs), mixture.likelihood
    components, noise = _draws(outputs, likelihood)
    found = []
    for first in range(0, max(1, len(outputs)), _ROWS_AT_A_TIME):
        part = type(mixture)(likelihood, outputs[first : first + _ROWS_AT_A_TIME])
        size = (len(part.outputs), _DRAWS)
        drawn = recalibration.sample(
            part,
            np.broadcast_to(components, size),
            np.broadcast_to(noise, (*size, *noise.shape[1:])),
        )
        found.append(
            _quantiles_of_depths(np.moveaxis(np.asarray(drawn), 1, -1), levels)
        )
    depths = np.concatenate(found)
    # As wide as for one target, and at most as wide as for tails that add up
    # (Bonferroni), whatever the draws.
    wide = levels.reshape(-1, *[1] * (depths.ndim - 2))
    depths = np.clip(depths, wide, 1.0 - (1.0 - wide) / drawn.shape[-1])
    return -ops.ndtri(0.5 - 0.5 * depths)[..., np.newaxis]


def _draws(
    outputs: np.ndarray, likelihood: Likelihood
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the component of each draw, [n], and its noise, [n, ..., noise_size]."""
    generator = np.random.default_rng(0)
    number, places = outputs.shape[1], outputs.shape[2:-1]
    components = np.resize(np.arange(number), _DRAWS)
    if (weights := likelihood.member_weights) is not None:
        # Draw s belongs to member `s mod K`.
        shares = np.resize(weights, number)
        components = generator.choice(number, _DRAWS, p=shares / shares.sum())
    half = generator.standard_normal((_DRAWS // 2, *places, likelihood.noise_size))
    return components, np.concatenate([half, -half])


def _quantiles_of_depths(drawn: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Returns the levels of intervals whose boxes have these levels, [rows, Q, ...].

    `drawn` is [rows, ..., k, n]. The depth of a value is the level of the least central
    interval of its target that holds it.
    """
    ordered, depths = np.sort(drawn, axis=-1), np.empty(drawn.shape)
    for place in np.ndindex(drawn.shape[:-1]):
        below, up_to = (
            np.searchsorted(ordered[place], drawn[place], side) / _DRAWS
            for side in ("left", "right")
        )
        depths[place] = np.maximum(2.0 * below - 1.0, 1.0 - 2.0 * up_to)
    farthest = np.maximum(depths, 0.0).max(axis=-2)
    found = np.quantile(farthest, levels, axis=-1, method="inverted_cdf")
    return np.moveaxis(found, 0, 1)
