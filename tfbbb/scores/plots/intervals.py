"""A plot of predictive intervals and true values."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.scores.plots.arguments import (
    check_of_numbers,
    check_same_length,
    checked_level,
    column,
    is_prediction,
    vector,
)
from tfbbb.scores.plots.style import (
    BLUE,
    DARK,
    LIGHT,
    VERMILION,
    count_with_ticks,
    dots,
    drawn_axes,
    legend_over_data,
    size_in_points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tfbbb.prediction import Predictive


def intervals(
    prediction: "Predictive | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]",
    y: npt.ArrayLike,
    *,
    level: float = 0.9,
    target: int = 0,
    label: str = "target",
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots predictive intervals, sorted by predicted mean, and the true values.

    True values outside their interval have another colour; for a calibrated model their
    expected share is `1 - level`.

    Args:
        prediction: A `tfbbb.Predictive` of n rows; or its means and the lower and upper
            ends of its intervals, [n] each.
        y: True values `[n]`, or `[n, k]` for k targets.
        level: Probability of the intervals.
        target: Index of the target to plot.
        label: Name and units of the values.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: The prediction is of classes; the arrays differ in length, are empty
            or are not finite; `level` is not strictly between 0 and 1; or there is no
            such `target`.

    Example:

    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots()
    >>> intervals(([1.2, 2.0], [0.8, 1.7], [1.6, 2.3]), [1.0, 2.5], axes=axes)
    <Axes: ...>
    """
    checked_level("level", level)
    mean, lower, upper = _read_intervals(prediction, level, target)
    truth = column("y", y, target)
    check_same_length(mean=mean, lower=lower, upper=upper, y=truth)
    order = np.argsort(mean, kind="stable")
    truth, mean, lower, upper = (array[order] for array in (truth, mean, lower, upper))
    inside = (lower <= truth) & (truth <= upper)
    rank = np.arange(1, len(truth) + 1)
    axes = drawn_axes(axes)

    axes.vlines(rank, lower, upper, color=LIGHT, linewidth=_bar_width(axes, len(rank)))
    axes.plot(rank, mean, color=DARK, linewidth=1.4, zorder=2)
    look = dots(len(rank))
    axes.scatter(rank[inside], truth[inside], color=BLUE, **look)
    axes.scatter(rank[~inside], truth[~inside], color=VERMILION, **look)

    axes.set_xlabel("rows, by predicted mean")
    axes.set_ylabel(label)
    axes.set_xlim(0.0, len(rank) + 1.0)
    count_with_ticks(axes)
    _add_legend(axes, inside, level)
    return axes


def _read_intervals(
    prediction: "Predictive | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]",
    level: float,
    target: int,
) -> list[np.ndarray]:
    names = ("mean", "lower", "upper")
    if is_prediction(prediction):
        check_of_numbers(prediction)
        arrays = (prediction.mean, *prediction.interval(level))
        return [
            column(name, values, target)
            for name, values in zip(names, arrays, strict=True)
        ]
    if not isinstance(prediction, tuple) or len(prediction) != len(names):
        raise ValueError(
            "`prediction` must be a `tfbbb.Predictive`, or a tuple of means, lower and "
            f"upper ends. Received: prediction of type {type(prediction).__name__}"
        )
    return [
        vector(name, values) for name, values in zip(names, prediction, strict=True)
    ]


def _bar_width(axes: "Axes", rows: int) -> float:
    """Returns the width of a row's bar in points, which leaves a gap between bars."""
    return min(max(0.5 * size_in_points(axes)[0] / rows, 0.3), 2.5)


def _add_legend(axes: "Axes", inside: np.ndarray, level: float) -> None:
    from matplotlib.lines import Line2D

    def dot(color: str) -> Line2D:
        return Line2D([], [], color=color, marker="o", markersize=4.5, linestyle="")

    handles = {
        "predicted mean": Line2D([], [], color=DARK, linewidth=1.4),
        f"{100 * level:g} % interval": Line2D([], [], color=LIGHT, linewidth=2.5),
        f"truth inside ({inside.sum()})": dot(BLUE),
        f"truth outside ({(~inside).sum()})": dot(VERMILION),
    }
    legend_over_data(axes, handles)
