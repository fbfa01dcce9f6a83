"""A plot of the signal-to-noise ratios of a model's weights."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.base.numbers import positive_integer
from tfbbb.scores.plots.style import (
    BLUE,
    DARK,
    drawn_axes,
)

if TYPE_CHECKING:
    import keras
    from matplotlib.axes import Axes

# Height of a histogram as a share of the distance between rows.
_HEIGHT = 0.85


def signal_to_noise(
    model: "keras.Model | Mapping[str, npt.ArrayLike]",
    *,
    bins: int = 60,
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots the histogram of `10 log10(|mean| / stddev)` of each layer's weights.

    Blundell et al. (2015) prune weights by this ratio. Left of 0 dB the standard
    deviation exceeds the mean. The layers come one below the other in the model's
    order; each histogram fills its row, and a tick marks its median. The axis cannot
    show weights that are exactly 0 (such as removed weights) or have no variance: a
    note gives their shares.

    Args:
        model: A model with built variational layers; or `|mean| / stddev` of weights,
            by the name of their layer.
        bins: Number of bins.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: There is no variational layer or no weight, a ratio is negative or
            NaN, no ratio is positive and finite, or `bins` is not a positive integer.

    Example:

    >>> from matplotlib.figure import Figure
    >>> ratios = {"hidden": [0.5, 2.0, 4.0], "output": [0.0, 10.0]}
    >>> axes = signal_to_noise(ratios, axes=Figure().subplots())
    >>> print(axes.get_yticklabels()[1].get_text())
    output
    2 weights, 50 % are 0
    """
    bins = positive_integer("bins", bins)
    layers = _read_ratios(model)
    decibels = {
        name: 10.0 * np.log10(ratios[(ratios > 0.0) & np.isfinite(ratios)])
        for name, ratios in layers.items()
    }
    edges = _edges(np.concatenate(list(decibels.values())), bins)
    axes = drawn_axes(axes, (8.0, 1.5 + 0.75 * max(len(layers), 2)))

    axes.axvline(
        0.0,
        color=DARK,
        linestyle="--",
        linewidth=1.2,
        zorder=0,
        label="|mean| = stddev",
    )
    for row, values in enumerate(decibels.values()):
        if values.size:
            counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
            heights = row - _HEIGHT * counts / counts.max()
            axes.stairs(heights, edges, baseline=row, fill=True, color=BLUE, alpha=0.6)
        axes.axhline(row, color=DARK, linewidth=0.8, zorder=3)
    rows = np.array(
        [row for row, values in enumerate(decibels.values()) if values.size]
    )
    medians = [np.median(values) for values in decibels.values() if values.size]
    axes.vlines(
        medians, rows - 0.12, rows, color=DARK, linewidth=1.8, zorder=3, label="median"
    )
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_yticks(
        range(len(layers)), [_format_title(*layer) for layer in layers.items()]
    )
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(len(layers) - 0.9, -1.0)
    axes.set_xlabel("signal-to-noise ratio of a weight, |mean| / stddev (dB)")
    axes.legend(frameon=False, loc="upper left")
    return axes


def _format_title(name: str, ratios: np.ndarray) -> str:
    notes = [
        f"{100 * share:.3g} % {what}"
        for share, what in (
            (np.mean(ratios == 0.0), "are 0"),
            (np.mean(np.isinf(ratios)), "known exactly"),
        )
        if share > 0.0
    ]
    return "\n".join([name, ", ".join([f"{ratios.size} weights", *notes])])


def _read_ratios(
    model: "keras.Model | Mapping[str, npt.ArrayLike]",
) -> dict[str, np.ndarray]:
    given = model if isinstance(model, Mapping) else _measure_model(model)
    layers = {
        name: np.ravel(np.asarray(values, dtype=float))
        for name, values in given.items()
    }
    if not layers or not all(ratios.size for ratios in layers.values()):
        raise ValueError(
            "There must be at least one layer, and weights in each layer. Received: "
            f"numbers of weights { {name: r.size for name, r in layers.items()} }"
        )
    everything = np.concatenate(list(layers.values()))
    if not (everything >= 0.0).all():
        raise ValueError(
            "Ratios |mean| / stddev must not be negative or NaN. "
            f"Received: {(~(everything >= 0.0)).sum()} that are, or are NaN"
        )
    if not ((everything > 0.0) & np.isfinite(everything)).any():
        raise ValueError(
            "There is nothing to plot: every weight is exactly 0 or known exactly. "
            f"Received: {everything.size} weights"
        )
    return layers


def _measure_model(model: "keras.Model") -> dict[str, np.ndarray]:
    from tfbbb.bayes.signal_to_noise import signal_to_noise as ratio_of
    from tfbbb.layers.named_layers import named_layers

    return {
        name: np.concatenate([np.ravel(ratio_of(w)) for w in layer.variational_weights])
        for name, layer in named_layers(model).items()
    }


def _edges(decibels: np.ndarray, bins: int) -> np.ndarray:
    # A single mean near 0 would stretch the axis and squeeze all other weights.
    low = np.quantile(decibels, 0.001, method="lower")
    return np.histogram_bin_edges(decibels[decibels >= low], bins)
