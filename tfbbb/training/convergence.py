"""Whether a training has converged, by figures that it has already."""

from collections.abc import Sequence

import numpy as np

from tfbbb.base.texts import shown_number
from tfbbb.base.types import Config

# The last part of a training, whose loss is compared with that of the part before.
_PART = 0.1
_FEWEST_LOSSES, _FEWEST_TO_COMPARE = 3, 3
# Of the drop of the whole training. The decay of the learning rate and cold posteriors,
# which fit their rows ever better, let the loss of a settled training fall a little.
_LEAST_SHARE = 0.05
# In nats per row. Smaller differences change no decision.
_LEAST_DROP = 0.02
# Variance of a uniform distribution of width 1.
_OF_ROUNDING = 1.0 / 12.0
_NEAR_FLOOR = 1.5
_TINY_NOISE = 1e-3


def describe_convergence(
    losses: Sequence[float],
    aleatoric: np.ndarray | None = None,
    targets: np.ndarray | None = None,
    resolution: float | None = None,
) -> Config:
    """Describes whether the loss still falls, or noise is missing.

    Example:

    >>> falling = [10.0 - 0.1 * epoch for epoch in range(40)]
    >>> describe_convergence(falling)["warnings"]
    ['The loss was still falling at the end: train more epochs.']
    """
    warnings = []
    drop, falls = _drop(losses), False
    if drop is not None:
        falls = drop > max(_LEAST_DROP, _LEAST_SHARE * (losses[0] - min(losses)))
    if falls:
        warnings.append("The loss was still falling at the end: train more epochs.")
    noise = None
    if aleatoric is not None and targets is not None:
        noise = float(np.sqrt(np.median(aleatoric)))
        warnings += _of_noise(noise, float(np.std(targets)), resolution)
    return {
        "loss_drop": drop,
        "loss_falls": bool(falls),
        "noise": noise,
        "warnings": warnings,
    }


def _drop(losses: Sequence[float]) -> float | None:
    """Returns the drop of the loss at the end."""
    if len(losses) < _FEWEST_LOSSES:
        return None
    size = max(round(_PART * len(losses)), min(_FEWEST_TO_COMPARE, len(losses) // 2))
    last = np.asarray(losses, np.float64)[-2 * size :]
    return float(last[:size].mean() - last[size:].mean())


def _of_noise(noise: float, spread: float, resolution: float | None) -> list[str]:
    if resolution is not None:
        floor = resolution * np.sqrt(_OF_ROUNDING)
        if noise <= _NEAR_FLOOR * floor:
            return [
                "The noise is at its floor, the rounding of the targets to steps of "
                f"{shown_number(resolution, 6)}: a column may give the target away."
            ]
    elif noise <= _TINY_NOISE * spread:
        small, whole = shown_number(noise, 2), shown_number(spread, 2)
        return [
            f"There is almost no noise ({small}, where the targets have a standard "
            f"deviation of {whole}): a column may give the target away."
        ]
    return []
