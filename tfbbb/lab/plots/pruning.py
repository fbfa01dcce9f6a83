"""A plot of a metric against the share of removed weights."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tfbbb.scores.plots.arguments import check_same_length, vector
from tfbbb.scores.plots.style import (
    CYCLE,
    DARK,
    drawn_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tfbbb.lab.compression import PruningCurve


def pruning_curve(
    curve: "PruningCurve | Mapping[str, PruningCurve]",
    *,
    label: str = "metric",
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots a metric of a model against the share of its weights that were removed.

    If all curves that begin at the share 0 have the same metric there, a dashed line
    marks it.

    Args:
        curve: The result of `tfbbb.lab.compression.pruning_curve`, or several results
            by name.
        label: Name and units of the metric.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: There is no curve, there are more curves than colours, or a curve is
            empty or not finite.

    Example:

    >>> import numpy as np, tfbbb
    >>> from matplotlib.figure import Figure
    >>> curve = tfbbb.lab.compression.PruningCurve(
    ...     shares=np.array([0.0, 0.5, 0.9]), figures=np.array([-1.0, -1.1, -2.0])
    ... )
    >>> axes = pruning_curve(curve, label="log-likelihood", axes=Figure().subplots())
    >>> axes.lines[-1].get_xdata()
    array([ 0., 50., 90.])
    """
    curves = curve if isinstance(curve, Mapping) else {"": curve}
    if not 0 < len(curves) <= len(CYCLE):
        raise ValueError(
            f"There must be 1 to {len(CYCLE)} curves. Received: {len(curves)}"
        )
    points = {}
    for name, measured in curves.items():
        if not hasattr(measured, "figures"):
            raise ValueError(
                "`curve` must be what `tfbbb.lab.compression.pruning_curve` returns, "
                f"or a dictionary of such curves. Received: {type(measured).__name__}"
            )
        shares = vector("shares", measured.shares)
        figures = vector("figures", measured.figures)
        check_same_length(shares=shares, figures=figures)
        points[name] = (100 * shares, figures)
    whole = {float(figures[0]) for shares, figures in points.values() if not shares[0]}
    axes = drawn_axes(axes)

    # Curves of one model have the same metric at the share 0.
    if len(whole) == 1:
        axes.axhline(
            whole.pop(),
            color=DARK,
            linestyle="--",
            linewidth=1.2,
            zorder=1,
            label="none removed",
        )
    for (name, (shares, figures)), color in zip(points.items(), CYCLE, strict=False):
        axes.plot(
            shares,
            figures,
            color=color,
            linewidth=1.8,
            marker="o",
            markersize=5,
            markeredgecolor="white",
            label=name or None,
        )
    axes.set_xlim(-2, 102)
    axes.set_xlabel("weights removed (%)")
    axes.set_ylabel(label)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
    return axes
