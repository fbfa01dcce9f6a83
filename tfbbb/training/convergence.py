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
_STANDARD_ERRORS = 4.0
# In nats per row. Smaller differences change no decision.
_LEAST_DROP = 0.02
_LEAST_GAP = 0.3
# Variance of a uniform distribution of width 1.
_OF_ROUNDING = 1.0 / 12.0
_NEAR_FLOOR = 1.5
_TINY_NOISE = 1e-3


def describe_convergence(
    losses: Sequence[float],
    gaps: np.ndarray,
    aleatoric: np.ndarray | None = None,
    targets: np.ndarray | None = None,
    resolution: float | None = None,
) -> Config:
    """Describes whether the loss still falls, members disagree, or noise is missing.

    Example:

    >>> falling = [10.0 - 0.1 * epoch for epoch in range(40)]
    >>> describe_convergence(falling, np.zeros((0, 2)))["warnings"]
    ['The loss was still falling at the end: train more epochs.']
    """
    warnings = []
    drop, error = _drop(losses)
    falls = False
    if drop is not None:
        whole = losses[0] - min(losses)
        least = max(_LEAST_DROP, _LEAST_SHARE * whole, _STANDARD_ERRORS * error)
        falls = drop > least
        if falls:
            warnings.append("The loss was still falling at the end: train more epochs.")
    worst = None
    if len(gaps):
        worst = int(np.argmax(gaps[:, 0]))
        gap, error = gaps[worst]
        if gap > max(_LEAST_GAP, _STANDARD_ERRORS * error):
            warnings.append(
                f"Members disagree: member {worst + 1} predicts rows that it left out "
                f"worse than the others by {shown_number(gap, 2)} nats per row."
            )
    noise = None
    if aleatoric is not None and targets is not None:
        noise = float(np.sqrt(np.median(aleatoric)))
        warnings += _of_noise(noise, float(np.std(targets)), resolution)
    return {
        "loss_drop": drop,
        "loss_falls": bool(falls),
        "member_gap": None if worst is None else float(gaps[worst, 0]),
        "noise": noise,
        "warnings": warnings,
    }


def _drop(losses: Sequence[float]) -> tuple[float | None, float]:
    """Returns the drop of the loss at the end, and its standard error."""
    if len(losses) < _FEWEST_LOSSES:
        return None, 0.0
    size = max(round(_PART * len(losses)), min(_FEWEST_TO_COMPARE, len(losses) // 2))
    values = np.asarray(losses, np.float64)
    before, last = values[-2 * size : -size], values[-size:]
    # Around the line through them: a trend is no noise.
    places = np.arange(2 * size)
    both = values[-2 * size :]
    drop = float(before.mean() - last.mean())
    if size < _FEWEST_TO_COMPARE:
        return drop, 0.0
    line = np.polyval(np.polyfit(places, both, 1), places)
    deviation = np.sqrt(np.square(both - line).sum() / max(2 * size - 2, 1))
    return drop, float(deviation * np.sqrt(2.0 / size))


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
