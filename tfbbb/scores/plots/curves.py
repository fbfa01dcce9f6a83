"""Plots of training by epoch, and of the loss of the most certain rows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.scores.plots.arguments import (
    check_prediction,
    check_same_length,
    vector,
    with_arguments,
)
from tfbbb.scores.plots.style import (
    BLUE,
    CYCLE,
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

    from tfbbb.prediction import Predictive


@with_arguments
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
    axes.set_xlim(1, len(epochs)) if len(epochs) > 1 else axes.set_xlim(0, 2)
    set_limits(axes, [parts[n] for n in names if n != "temperature"], 10)
    axes.set(xlabel="epoch", ylabel="nats per row")
    count_with_ticks(axes)
    # Losses are high at the left, so the legend goes to the right.
    legend_over_data(axes, loc="upper right")
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


def set_limits(axes: "Axes", curves: list[np.ndarray], ignored: int) -> None:
    """Sets vertical limits by curves without their first part, 1 / `ignored`."""
    settled = np.concatenate([curve[len(curve) // ignored :] for curve in curves])
    low, high = settled.min(), settled.max()
    margin = 0.05 * (high - low) or 0.5
    axes.set_ylim(low - margin, high + margin)


@with_arguments
def risk_coverage(
    prediction: "Predictive",
    y: npt.ArrayLike,
    *,
    by: str | Sequence[str] | None = None,
    label: str | None = None,
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots the mean loss of the most certain rows against their share.

    At coverage c the curve is the mean loss of the share c of the rows with the lowest
    uncertainty (El-Yaniv and Wiener 2010). The loss is 1 for a wrong class, and the
    squared error of the mean for numbers. The oracle sorts the rows by their losses,
    and the dashed line is the expectation for a random order. The legend shows the mean
    over the coverages, the area under the curve. The limits of the vertical axis ignore
    the first twentieth of the curves, which averages few rows.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0], [2.0]])
    >>> from matplotlib.figure import Figure
    >>> axes = risk_coverage(
    ...     prediction, prediction.mean + [[1.0], [2.0]], axes=Figure().subplots()
    ... )
    >>> axes.lines[-1].get_ydata()
    array([1. , 2.5])
    """
    from tfbbb.prediction.target_scores import is_of_classes
    from tfbbb.scores import metrics
    from tfbbb.scores.metrics.ranking import row_losses
    from tfbbb.scores.metrics.targets import checked_targets

    check_prediction(prediction)
    named = _list_uncertainties(prediction, by)
    targets = checked_targets(prediction, y, "any", "risk_coverage")
    curves = {
        name: metrics.risk_coverage_curve(prediction, y, by=name) for name in named
    }
    losses = row_losses(prediction, targets)
    coverage = 100 * np.arange(1, len(losses) + 1) / len(losses)
    oracle = np.cumsum(np.sort(losses)) / np.arange(1, len(losses) + 1)
    axes = drawn_axes(axes)

    axes.axhline(
        losses.mean(),
        color=DARK,
        linestyle="--",
        linewidth=1.2,
        label=f"random ({losses.mean():.4g})",
    )
    axes.plot(
        coverage,
        oracle,
        color=DARK,
        linestyle=":",
        linewidth=1.4,
        label=f"oracle ({oracle.mean():.4g})",
    )
    for (name, curve), color in zip(curves.items(), CYCLE, strict=False):
        axes.plot(
            100 * curve.coverage,
            curve.risk,
            color=color,
            linewidth=1.8,
            label=f"{name.replace('_', ' ')} ({curve.area:.4g})",
        )
    axes.set_xlim(0, 100)
    set_limits(axes, [oracle, *(curve.risk for curve in curves.values())], 20)
    loss = "error rate" if is_of_classes(prediction) else "mean squared error"
    axes.set(xlabel="rows answered, the surest first (%)", ylabel=label or loss)
    # The means at the left average few rows and may be high.
    title = "(mean over the coverages)"
    legend_over_data(axes, title=title, loc="upper right")
    return axes


def _list_uncertainties(
    prediction: "Predictive", by: str | Sequence[str] | None
) -> list[str]:
    if by is None:
        from tfbbb.scores.metrics.ranking import named_uncertainty

        return [named_uncertainty(prediction, by, "variance")]
    names = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if not 0 < len(names) <= len(CYCLE):
        raise ValueError(
            f"`by` must name 1 to {len(CYCLE)} uncertainties. Received: by={by!r}"
        )
    return names
