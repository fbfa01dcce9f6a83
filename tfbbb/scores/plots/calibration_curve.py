"""A plot of the coverage of central intervals against their level."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.base.sampling_band import sampling_band
from tfbbb.scores.plots.arguments import checked_level
from tfbbb.scores.plots.pit_values import pit_values
from tfbbb.scores.plots.style import (
    BLUE,
    DARK,
    PALE,
    SQUARE,
    drawn_axes,
    legend_beside_data,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tfbbb.prediction import Predictive


def calibration_curve(
    prediction: "Predictive | npt.ArrayLike",
    y: npt.ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    target: int = 0,
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots the share of rows inside their central intervals against the level.

    With the probability integral transform u of a row, its interval of level p contains
    the true value if `|2 u - 1| <= p`. Under a calibrated model this holds for a share
    p of n rows, up to chance: the count is Binomial(n, p), and at each level the band
    contains the count with probability `confidence`. A curve below the diagonal means
    that the intervals are too narrow, a curve above that they are too wide. For counts
    and ordered classes u is drawn within its step, as by `tfbbb.metrics.pit_values`.

    Args:
        prediction: A `tfbbb.Predictive` of n rows; or its values u, [n].
        y: True values `[n]`, or `[n, k]` for k targets; None with values u.
        confidence: Probability of the band at each level.
        target: Index of the target to plot.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: The arrays differ in length, are empty or are not finite; values u
            are not from 0 to 1; `y` is missing, or given together with values u;
            `confidence` is not strictly between 0 and 1; or there is no such `target`.

    Example:

    >>> from matplotlib.figure import Figure
    >>> axes = calibration_curve([0.1, 0.3, 0.6, 0.7], axes=Figure().subplots())
    >>> print(axes.lines[1].get_ydata()[50])  # % of the rows in their 50 % intervals
    75.0
    """
    checked_level("confidence", confidence)
    values = pit_values(prediction, y, target)
    rows = len(values)
    levels = np.linspace(0.0, 1.0, 101)
    smallest = np.sort(np.abs(2.0 * values - 1.0))
    # The tolerance absorbs the rounding of decimal levels in binary.
    observed = np.searchsorted(smallest, levels + 1e-12, side="right") / rows
    lower, upper = sampling_band(rows, levels, confidence)
    axes = drawn_axes(axes, SQUARE)

    band = axes.fill_between(
        100 * levels,
        100 * lower / rows,
        100 * upper / rows,
        color=PALE,
        linewidth=0,
        label=f"its {100 * confidence:g} % sampling band",
    )
    (diagonal,) = axes.plot(
        [0, 100],
        [0, 100],
        color=DARK,
        linestyle="--",
        linewidth=1.2,
        label="calibrated",
    )
    (curve,) = axes.plot(
        100 * levels,
        100 * observed,
        color=BLUE,
        linewidth=1.8,
        label=f"observed (n = {rows})",
    )
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    axes.set_aspect("equal")
    axes.set_xlabel("level of the interval (%)")
    axes.set_ylabel("rows inside it (%)")
    legend_beside_data(axes, [diagonal, band, curve])
    return axes
