"""A plot of the evidence lower bound and its parts during training."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.scores.plots.arguments import check_same_length, vector
from tfbbb.scores.plots.style import (
    BLUE,
    DARK,
    GREEN,
    SKY,
    VERMILION,
    count_with_ticks,
    drawn_axes,
    legend_over_data,
    strip_above,
)

if TYPE_CHECKING:
    import keras
    from matplotlib.axes import Axes


def elbo_curve(
    history: "keras.callbacks.History | Mapping[str, npt.ArrayLike]",
    *,
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots the parts of the loss of a `BayesianModel` for each epoch.

    `loss = nll + temperature / N * kl`, in nats per row, is the negative evidence lower
    bound of a row if the temperature is 1. The area between the lines of loss and nll
    is the cost of the divergence. A dot marks the lowest `val_nll`. A strip above shows
    the temperature if it changed. The limits of the vertical axis ignore the first
    tenth of the epochs, in which the loss may fall steeply.

    Args:
        history: The result of `BayesianModel.fit`, or its `history` dictionary.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: The history has no `loss` or no `nll`, or its values are empty, not
            finite, or of different lengths.

    Example:

    >>> from matplotlib.figure import Figure
    >>> history = {"loss": [3.0, 2.0, 1.5], "nll": [2.5, 1.6, 1.2]}
    >>> axes = elbo_curve(history, axes=Figure().subplots())
    >>> axes.get_legend_handles_labels()[1]
    ['temperature / N × KL', 'loss', 'nll']
    """
    logs = getattr(history, "history", history)
    if not isinstance(logs, Mapping) or not {"loss", "nll"} <= logs.keys():
        raise ValueError(
            "The history must have a `loss` and an `nll`, as the history of "
            f"`BayesianModel.fit` has. Received: {sorted(logs) if logs else logs}"
        )
    names = [n for n in ("loss", "nll", "val_nll", "temperature") if n in logs]
    parts = {name: vector(name, logs[name]) for name in names}
    check_same_length(**parts)
    epochs = np.arange(1, len(parts["loss"]) + 1)
    axes = drawn_axes(axes)

    axes.fill_between(
        epochs,
        parts["nll"],
        parts["loss"],
        color=SKY,
        alpha=0.35,
        linewidth=0,
        label="temperature / N × KL",
    )
    marker = "o" if len(epochs) == 1 else ""
    axes.plot(epochs, parts["loss"], color=DARK, lw=1.8, marker=marker, label="loss")
    axes.plot(epochs, parts["nll"], color=BLUE, lw=1.8, marker=marker, label="nll")
    if "val_nll" in parts:
        _draw_validation(axes, epochs, parts["val_nll"])
    _set_limits(axes, [parts[n] for n in names if n != "temperature"])
    axes.set_xlabel("epoch")
    axes.set_ylabel("nats per row")
    count_with_ticks(axes)
    handles, labels = axes.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    # Losses are high at the left, so the legend goes to the right.
    legend_over_data(axes, named, loc="upper right")
    if "temperature" in parts and np.ptp(parts["temperature"]) > 0.0:
        strip = strip_above(axes)
        strip.plot(epochs, parts["temperature"], color=GREEN, linewidth=1.6)
        strip.set_ylim(0.0, 1.15 * parts["temperature"].max())
        strip.annotate(
            "temperature",
            (0.99, 0.1),
            xycoords="axes fraction",
            ha="right",
            fontsize="small",
            color=GREEN,
        )
    return axes


def _draw_validation(axes: "Axes", epochs: np.ndarray, values: np.ndarray) -> None:
    best = int(values.argmin())
    axes.plot(epochs, values, color=VERMILION, linewidth=1.8, label="val_nll")
    axes.plot(
        epochs[best],
        values[best],
        color=VERMILION,
        marker="o",
        markeredgecolor="white",
        linestyle="",
        label=f"lowest: {values[best]:.4g} at epoch {epochs[best]}",
    )


def _set_limits(axes: "Axes", curves: list[np.ndarray]) -> None:
    last = len(curves[0])
    axes.set_xlim(1, last) if last > 1 else axes.set_xlim(0, 2)
    settled = np.concatenate([curve[len(curve) // 10 :] for curve in curves])
    low, high = settled.min(), settled.max()
    margin = 0.05 * (high - low) or 0.5
    axes.set_ylim(low - margin, high + margin)
