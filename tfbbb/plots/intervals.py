"""Predictive intervals against the truth."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Blue and vermilion of Okabe and Ito (2008), told apart by colour-blind readers.
_INSIDE = "#0072B2"
_OUTSIDE = "#D55E00"


def intervals(
    truth: npt.ArrayLike,
    mean: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    level: float = 0.9,
    label: str = "target",
    axes: "Axes | None" = None,
) -> "Axes":
    """Draws predictive intervals of rows, in the order of their means, and the truth.

    Of the true values, those outside their interval stand out; about `1 - level` of
    them should be.

    Args:
        truth: True values `[n]`.
        mean: Predictive means `[n]`.
        lower: Lower ends of the intervals `[n]`.
        upper: Upper ends of the intervals `[n]`.
        level: Probability of the intervals.
        label: Name and units of the values.
        axes: Where to draw, by default on a new figure.

    Returns:
        The axes.

    Raises:
        ValueError: The arrays are not all of the same shape `[n]`.

    Example:

    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots()
    >>> intervals([1.0, 2.5], [1.2, 2.0], [0.8, 1.7], [1.6, 2.3], axes=axes)
    <Axes: ...>
    """
    arrays = [np.asarray(values, dtype=float) for values in (truth, mean, lower, upper)]
    shapes = [values.shape for values in arrays]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1 or not shapes[0][0]:
        raise ValueError(
            "`truth`, `mean`, `lower` and `upper` must be arrays of the same length. "
            f"Received: shapes {shapes}"
        )
    order = np.argsort(arrays[1], kind="stable")
    truth, mean, lower, upper = (values[order] for values in arrays)
    inside = (lower <= truth) & (truth <= upper)
    rank = np.arange(1, len(truth) + 1)
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")[1]

    axes.vlines(rank, lower, upper, color="0.78", linewidth=2.5, zorder=1)
    axes.plot(rank, mean, color="0.35", linewidth=1.4, zorder=2)
    dots: dict[str, Any] = {
        "s": 18,
        "linewidths": 0.5,
        "edgecolors": "white",
        "zorder": 3,
    }
    axes.scatter(rank[inside], truth[inside], color=_INSIDE, **dots)
    axes.scatter(rank[~inside], truth[~inside], color=_OUTSIDE, **dots)

    axes.set_xlabel("held-out rows, by predicted mean")
    axes.set_ylabel(label)
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    _add_legend(axes, inside, level)
    return axes


def _add_legend(axes: "Axes", inside: np.ndarray, level: float) -> None:
    from matplotlib.lines import Line2D

    def dot(color: str) -> Line2D:
        return Line2D([], [], color=color, marker="o", markersize=4.5, linestyle="")

    handles = {
        "predicted mean": Line2D([], [], color="0.35", linewidth=1.4),
        f"{100 * level:g} % interval": Line2D([], [], color="0.78", linewidth=2.5),
        f"truth inside ({inside.sum()})": dot(_INSIDE),
        f"truth outside ({(~inside).sum()})": dot(_OUTSIDE),
    }
    axes.legend(
        handles.values(), handles.keys(), frameon=False, loc="upper left", ncols=2
    )
