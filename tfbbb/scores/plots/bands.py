"""Plots of predictions as intervals: row by row, and over one input."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.prediction.levels import checked_level
from tfbbb.scores.plots.arguments import (
    check_of_numbers,
    check_same_length,
    column,
    vector,
    with_arguments,
)
from tfbbb.scores.plots.style import (
    BLUE,
    DARK,
    LIGHT,
    SKY,
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


@with_arguments
def intervals(
    prediction: "Predictive",
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

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> from matplotlib.figure import Figure
    >>> prediction = model.predictive([[1.0], [2.0]], num_samples=20)
    >>> intervals(prediction, [1.0, 2.5], axes=Figure().subplots())
    <Axes: xlabel='rows, by predicted mean', ylabel='target'>
    """
    checked_level(level)
    check_of_numbers(prediction)
    parts = prediction.mean, *prediction.interval(level)
    mean, lower, upper = (column("prediction", part, target) for part in parts)
    truth = column("y", y, target)
    check_same_length(mean=mean, lower=lower, upper=upper, y=truth)
    order = np.argsort(mean, kind="stable")
    truth, mean, lower, upper = (array[order] for array in (truth, mean, lower, upper))
    inside = (lower <= truth) & (truth <= upper)
    rank = np.arange(1, len(truth) + 1)
    axes = drawn_axes(axes)

    # The bars of few rows and of many leave gaps.
    width = min(max(0.5 * size_in_points(axes)[0] / len(rank), 0.3), 2.5)
    axes.vlines(rank, lower, upper, color=LIGHT, linewidth=width)
    axes.plot(rank, mean, color=DARK, linewidth=1.4, zorder=2)
    look = dots(len(rank))
    axes.scatter(rank[inside], truth[inside], color=BLUE, **look)
    axes.scatter(rank[~inside], truth[~inside], color=VERMILION, **look)

    axes.set(xlabel="rows, by predicted mean", ylabel=label, xlim=(0, len(rank) + 1))
    count_with_ticks(axes)
    _add_legend(axes, inside, level)
    return axes


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


@with_arguments
def predictive_band(
    prediction: "Predictive",
    x: npt.ArrayLike,
    *,
    data: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    level: float = 0.9,
    target: int = 0,
    xlabel: str = "input",
    label: str = "target",
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots the predictive distribution over one input: median and two nested bands.

    The outer band is the central interval of probability `level` of y. The inner band
    is its epistemic part. Its distance from the median is the distance of the outer
    band times the epistemic share of the standard deviation,

        sqrt(epistemic / (epistemic + aleatoric)),

    so that the inner band is the same interval of E[y | w] if both distributions are
    normal, and always lies within the outer band. More data would narrow the inner
    band, but not the part between the bands.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> x = np.linspace(-1.0, 1.0, 20)[:, np.newaxis]
    >>> from matplotlib.figure import Figure
    >>> prediction = model.predictive(x, num_samples=20)
    >>> predictive_band(prediction, x, axes=Figure().subplots())
    <Axes: xlabel='input', ylabel='target'>
    """
    levels = [0.5 - checked_level(level) / 2, 0.5, 0.5 + level / 2]
    check_of_numbers(prediction)
    at = vector("x", x)
    quantiles = np.moveaxis(prediction.quantile(levels), 1, 0)
    lower, median, upper = (column("quantiles", q, target) for q in quantiles)
    check_same_length(prediction=median, x=at)
    variance = column("variance", prediction.variance, target)
    epistemic = column("epistemic", prediction.epistemic, target)
    share = np.sqrt(
        np.divide(epistemic, variance, out=np.zeros_like(at), where=variance > 0)
    )
    order = np.argsort(at, kind="stable")
    at, median, lower, upper, share = (
        array[order] for array in (at, median, lower, upper, share)
    )
    points = None if data is None else _validate_data(data, target)
    axes = drawn_axes(axes)

    axes.fill_between(
        at,
        lower,
        upper,
        color=SKY,
        alpha=0.3,
        linewidth=0,
        label=f"epistemic + aleatoric: {100 * level:g} % of y",
    )
    axes.fill_between(
        at,
        median - share * (median - lower),
        median + share * (upper - median),
        color=BLUE,
        alpha=0.35,
        linewidth=0,
        label="epistemic part",
    )
    axes.plot(at, median, color=BLUE, linewidth=1.8, label="predicted median")
    if points is not None:
        axes.scatter(*points, color=DARK, label="data", **dots(len(points[0])))
    axes.set(xlabel=xlabel, ylabel=label)
    axes.margins(x=0.0)
    legend_over_data(axes)
    return axes


def _validate_data(
    data: tuple[npt.ArrayLike, npt.ArrayLike], target: int
) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(data, tuple) or len(data) != 2:
        raise ValueError(
            "`data` must be a tuple of inputs and targets. "
            f"Received: data of type {type(data).__name__}"
        )
    inputs = vector("inputs of the data", data[0])
    targets = column("targets of the data", data[1], target)
    check_same_length(inputs=inputs, targets=targets)
    return inputs, targets
