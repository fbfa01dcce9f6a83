"""A plot of the histogram of the probability integral transform."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.base.numbers import positive_integer
from tfbbb.base.sampling_band import sampling_band
from tfbbb.scores.plots.arguments import checked_level
from tfbbb.scores.plots.pit_values import pit_values
from tfbbb.scores.plots.style import (
    BLUE,
    DARK,
    VERMILION,
    drawn_axes,
    legend_over_data,
)

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
    """Plots the histogram of the probability integral transform `u = P(Y <= y | x)`.

    Under a calibrated model u is uniform (Dawid 1984), so the histogram is flat. A
    valley in the middle means that the predictive distributions are too narrow, a hill
    that they are too wide, a slope that they are biased. Under a calibrated model the
    count of a bin, with n rows and B bins, is Binomial(n, 1/B). The band contains all B
    counts with at least the probability `confidence` (Bonferroni); bars beyond the band
    have another colour. For counts and ordered classes u is drawn within its step, as
    by `tfbbb.metrics.pit_values`.

    Args:
        prediction: A `tfbbb.Predictive` of n rows; or its values u, [n].
        y: True values `[n]`, or `[n, k]` for k targets; None with values u.
        bins: Number B of bins; by default one for every ten rows, from 5 to 20.
        confidence: Probability of the band.
        target: Index of the target to plot.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: The arrays differ in length, are empty or are not finite; values u
            are not from 0 to 1; `y` is missing, or given together with values u; `bins`
            is not a positive integer; `confidence` is not strictly between 0 and 1; or
            there is no such `target`.

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
