"""Plots of calibration: of intervals, of distributions and of classes."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.base.numbers import positive_integer
from tfbbb.base.sampling_band import sampling_band
from tfbbb.prediction.levels import checked_level
from tfbbb.scores.plots.arguments import (
    check_prediction,
    column,
    with_arguments,
)
from tfbbb.scores.plots.style import (
    BLUE,
    DARK,
    LIGHT,
    PALE,
    SQUARE,
    VERMILION,
    drawn_axes,
    legend_beside_data,
    legend_over_data,
    strip_above,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from tfbbb.prediction import Predictive


@with_arguments
def calibration_curve(
    prediction: "Predictive",
    y: npt.ArrayLike,
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
    and grades u is drawn within its step, as by `tfbbb.metrics.pit_values`.

    Example:

    >>> import keras, tfbbb
    >>> from matplotlib.figure import Figure
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0], [2.0]])
    >>> axes = calibration_curve(prediction, prediction.mean, axes=Figure().subplots())
    >>> print(axes.lines[1].get_ydata()[50])  # % of the rows in their 50 % intervals
    100.0
    """
    checked_level(confidence, "confidence")
    values = _pit_values(prediction, y, target)
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
    diagonal = _draw_diagonal(axes)
    (curve,) = axes.plot(
        100 * levels,
        100 * observed,
        color=BLUE,
        linewidth=1.8,
        label=f"observed (n = {rows})",
    )
    axes.set(xlabel="level of the interval (%)", ylabel="rows inside it (%)")
    legend_beside_data(axes, [diagonal, band, curve])
    return axes


def _draw_diagonal(axes: "Axes") -> "Artist":
    """Draws where a calibrated model lies, in axes from 0 to 100 % both ways."""
    (line,) = axes.plot(
        [0, 100], [0, 100], color=DARK, ls="--", lw=1.2, label="calibrated"
    )
    axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    return line


@with_arguments
def pit_histogram(
    prediction: "Predictive",
    y: npt.ArrayLike,
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
    have another colour. There is a bin for every ten rows by default, from 5 to 20. For
    counts and grades u is drawn within its step, as by
    `tfbbb.metrics.pit_values`.

    Example:

    >>> import keras, tfbbb
    >>> from matplotlib.figure import Figure
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0], [2.0]])
    >>> y = prediction.quantile(0.3)
    >>> axes = pit_histogram(prediction, y, bins=2, axes=Figure().subplots())
    >>> print(*(bar.get_height() for bar in axes.patches[1:]))  # after the band
    2 0
    """
    checked_level(confidence, "confidence")
    values = _pit_values(prediction, y, target)
    rows = len(values)
    bins = positive_integer(
        "bins", min(max(rows // 10, 5), 20) if bins is None else bins
    )
    counts, edges = np.histogram(values, bins=bins, range=(0.0, 1.0))
    lower, upper = sampling_band(rows, 1.0 / bins, 1.0 - (1.0 - confidence) / bins)
    axes = drawn_axes(axes)

    ends = float(lower), float(upper)
    band = axes.axhspan(*ends, color=DARK, alpha=0.2, linewidth=0, zorder=2)
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
    axes.set(xlim=(0, 1), ylim=(0, 1.05 * max(counts.max(), float(upper))))
    axes.set(xlabel="probability integral transform", ylabel="rows")
    handles: dict[str, Artist] = {
        "calibrated": expected,
        f"its {100 * confidence:g} % sampling band": band,
    }
    for which, name in ((~outside, f"rows (n = {rows})"), (outside, "beyond the band")):
        if which.any():
            handles[name] = bars[int(which.argmax())]
    legend_over_data(axes, handles)
    return axes


def _pit_values(prediction: "Predictive", y: npt.ArrayLike, target: int) -> np.ndarray:
    """Returns u = P(Y <= y | x) of each row, [n]; see `pit_histogram`."""
    from tfbbb.scores import metrics

    check_prediction(prediction)
    return column("prediction", metrics.pit_values(prediction, y), target)


@with_arguments
def reliability_diagram(
    prediction: "Predictive",
    y: npt.ArrayLike,
    *,
    bins: int = 15,
    confidence: float = 0.95,
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots the accuracy of predicted classes against their probability.

    Puts the rows into bins of equal width by the probability of their most probable
    class (DeGroot and Fienberg 1983). The dot of a bin is at the mean of these
    probabilities and the share of right predictions. Under a calibrated model the
    number of right predictions of a bin is approximately binomial with that mean: the
    bar contains it with probability `confidence` (Bröcker and Smith 2007), and dots
    beyond their bar have another colour. The strip above counts the rows of each bin.

    Example:

    >>> import keras, tfbbb
    >>> from matplotlib.figure import Figure
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> prediction = model.predictive([[1.0], [2.0]])
    >>> axes = reliability_diagram(prediction, [0, 2], axes=Figure().subplots())
    >>> axes.get_legend_handles_labels()[1][:2]
    ['calibrated', 'its 95 % sampling band']
    """
    from tfbbb.scores import metrics

    checked_level(confidence, "confidence")
    check_prediction(prediction)
    measured = metrics.reliability_diagram(prediction, y, bins=bins)
    filled = measured.counts > 0
    rows, expected = measured.counts[filled], measured.confidence[filled]
    observed = measured.accuracy[filled]
    lower, upper = sampling_band(rows, np.minimum(expected, 1.0), confidence)
    hits = np.round(rows * observed)
    outside = (hits < lower) | (hits > upper)
    axes = drawn_axes(axes, SQUARE)

    _draw_diagonal(axes)
    axes.vlines(
        100 * expected,
        100 * lower / rows,
        100 * upper / rows,
        color=LIGHT,
        linewidth=7,
        label=f"its {100 * confidence:g} % sampling band",
    )
    for which, color, name in (
        (~outside, BLUE, f"observed (n = {rows.sum()})"),
        (outside, VERMILION, "beyond the band"),
    ):
        if which.any():
            axes.scatter(
                100 * expected[which],
                100 * observed[which],
                s=40,
                color=color,
                edgecolors="white",
                linewidths=0.8,
                zorder=3,
                clip_on=False,
                label=name,
            )
    axes.set(xlabel="probability of the predicted class (%)")
    axes.set(ylabel="rows of that class (%)")
    # Dots lie near the diagonal, rarely at the lower right.
    handles = axes.get_legend_handles_labels()[0]
    legend_beside_data(axes, handles, loc="lower right")

    strip = strip_above(axes)
    strip.bar(
        100 * measured.edges[:-1],
        measured.counts,
        width=100 * np.diff(measured.edges),
        align="edge",
        color=LIGHT,
        edgecolor="white",
        linewidth=0.8,
    )
    strip.set_yticks([0, int(measured.counts.max())])
    strip.set_ylabel("rows", fontsize="small")
    return axes
