"""Where the true values lie in their predictive distributions."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.checked_numbers import positive_integer
from tfbbb.plots.arguments import checked_level
from tfbbb.plots.pit_values import pit_values
from tfbbb.plots.sampling_band import sampling_band
from tfbbb.plots.style import BLUE, DARK, VERMILION, drawn_axes, legend_over_data

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from tfbbb.prediction import Predictive


def pit_histogram(
    prediction: "Predictive | npt.ArrayLike",
    y: npt.ArrayLike | None = None,
    *,
    bins: int | None = None,
    confidence: float = 0.95,
    target: int = 0,
    axes: "Axes | None" = None,
) -> "Axes":
    """Draws the histogram of the probability integral transform `u = P(Y <= y | x)`.

    Under a calibrated model u is uniform (Dawid 1984): the bars are level. A valley in
    the middle says that the predictive distributions are too narrow, a hill that they
    are too wide, a slope that they are shifted. A count among n rows in B bins is
    Binomial(n, 1/B) under a calibrated model; the band holds all B of them with
    probability `confidence` or more (Bonferroni), and bars that leave it stand out. Of
    counts and ordered classes u is drawn within its step, as by
    `tfbbb.metrics.pit_values`.

    Args:
        prediction: A `tfbbb.Predictive` of n rows; or its values u, [n].
        y: True values `[n]`, or `[n, k]` of k targets; not for values u.
        bins: Number B of bins; by default one for every ten rows, from 5 to 20.
        confidence: Probability of the band.
        target: Index of the target to draw, of a prediction with several.
        axes: Where to draw, by default on a new figure.

    Returns:
        The axes.

    Raises:
        ValueError: The arrays differ in length, are empty, hold a number that is not
            finite or, of values u, not from 0 to 1; `y` is missing or given beside
            values u; `bins` is no positive integer; the `confidence` is not strictly
            between 0 and 1; or there is no such `target`.

    Example:

    >>> from matplotlib.figure import Figure
    >>> axes = pit_histogram([0.1, 0.3, 0.6, 0.7], bins=2, axes=Figure().subplots())
    >>> print(*(bar.get_height() for bar in axes.patches[1:]))  # after the band
    2 2
    """
    checked_level("confidence", confidence)
    values = pit_values(prediction, y, target)
    rows = len(values)
    bins = positive_integer(
        "bins", min(max(rows // 10, 5), 20) if bins is None else bins
    )
    counts, edges = np.histogram(values, bins=bins, range=(0.0, 1.0))
    lower, upper = sampling_band(rows, 1.0 / bins, 1.0 - (1.0 - confidence) / bins)
    axes = drawn_axes(axes)

    band = axes.axhspan(
        float(lower),
        float(upper),
        color=DARK,
        alpha=0.2,
        linewidth=0,
        zorder=2,
    )
    outside = (counts < lower) | (counts > upper)
    bars = axes.bar(
        edges[:-1],
        counts.tolist(),
        width=np.diff(edges),
        align="edge",
        color=np.where(outside, VERMILION, BLUE).tolist(),
        edgecolor="white",
        linewidth=0.8,
        zorder=1,
    )
    expected = axes.axhline(
        rows / bins, color=DARK, linestyle="--", linewidth=1.2, zorder=3
    )
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.05 * max(counts.max(), float(upper)))
    axes.set_xlabel("probability integral transform")
    axes.set_ylabel("rows")
    handles: dict[str, Artist] = {
        "calibrated": expected,
        f"its {100 * confidence:g} % sampling band": band,
    }
    for which, name in ((~outside, f"rows (n = {rows})"), (outside, "beyond the band")):
        if which.any():
            handles[name] = bars[int(which.argmax())]
    legend_over_data(axes, handles)
    return axes
