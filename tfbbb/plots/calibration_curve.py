"""How often intervals hold the truth."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.plots.arguments import checked_level
from tfbbb.plots.pit_values import pit_values
from tfbbb.plots.sampling_band import sampling_band
from tfbbb.plots.style import BLUE, DARK, PALE, SQUARE, drawn_axes, legend_beside_data

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
    """Draws the share of rows inside their central intervals, level by level.

    With the probability integral transform u of a row, its interval of level p holds
    the truth where `|2 u - 1| <= p`. Under a calibrated model that happens for a share
    p of n rows, up to chance: the count is Binomial(n, p), and at each level the band
    holds it with probability `confidence`. A curve below the diagonal says that the
    intervals are too narrow, one above that they are too wide. Of counts and ordered
    classes u is drawn within its step, as by `tfbbb.metrics.pit_values`.

    Args:
        prediction: A `tfbbb.Predictive` of n rows; or its values u, [n].
        y: True values `[n]`, or `[n, k]` of k targets; not for values u.
        confidence: Probability of the band at each level.
        target: Index of the target to draw, of a prediction with several.
        axes: Where to draw, by default on a new figure.

    Returns:
        The axes.

    Raises:
        ValueError: The arrays differ in length, are empty, hold a number that is not
            finite or, of values u, not from 0 to 1; `y` is missing or given beside
            values u; the `confidence` is not strictly between 0 and 1; or there is no
            such `target`.

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
    # Halves and tenths of a percent are not what they seem in binary.
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
