"""A plot of a predictive distribution over one input."""

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from tfbbb.scores.plots.arguments import (
    check_of_numbers,
    check_prediction,
    check_same_length,
    checked_level,
    column,
    vector,
)
from tfbbb.scores.plots.style import (
    BLUE,
    DARK,
    SKY,
    dots,
    drawn_axes,
    legend_over_data,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tfbbb.prediction import Predictive


def predictive_band(
    prediction: "Predictive",
    x: npt.ArrayLike,
    *,
    data: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    level: float = 0.9,
    line: Literal["median", "mean"] = "median",
    target: int = 0,
    xlabel: str = "input",
    label: str = "target",
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots the predictive distribution over one input as a line and two nested bands.

    The outer band is the central interval of probability `level` of y. The inner band
    is its epistemic part. Its distance from the line is the distance of the outer band
    times the epistemic share of the standard deviation,

        sqrt(epistemic / (epistemic + aleatoric)),

    so that the inner band is the same interval of E[y | w] if both distributions are
    normal, and always lies within the outer band. More data would narrow the inner
    band, but not the part between the bands.

    Args:
        prediction: A `tfbbb.Predictive` at the inputs `x`.
        x: The input `[n]`, usually a grid, in any order.
        data: Inputs `[m]` and targets `[m]` (or `[m, k]`) to plot as dots.
        level: Probability of the outer band.
        line: `"median"` or `"mean"` of y.
        target: Index of the target to plot.
        xlabel: Name and units of the input.
        label: Name and units of the target.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: `prediction` is of classes or not a `tfbbb.Predictive`; the arrays
            differ in length, are empty or are not finite; `level` is not strictly
            between 0 and 1; `line` is unknown; or there is no such `target`.

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
    levels = [0.5 - checked_level("level", level) / 2, 0.5, 0.5 + level / 2]
    if line not in ("median", "mean"):
        raise ValueError(f"`line` must be 'median' or 'mean'. Received: line={line!r}")
    check_prediction(prediction)
    check_of_numbers(prediction)
    at = vector("x", x)
    quantiles = np.moveaxis(prediction.quantile(levels), 1, 0)
    lower, median, upper = (column("quantiles", q, target) for q in quantiles)
    check_same_length(prediction=median, x=at)
    centre = median if line == "median" else column("mean", prediction.mean, target)
    variance = column("variance", prediction.variance, target)
    epistemic = column("epistemic", prediction.epistemic, target)
    share = np.sqrt(
        np.divide(epistemic, variance, out=np.zeros_like(at), where=variance > 0)
    )
    order = np.argsort(at, kind="stable")
    at, centre, lower, upper, share = (
        array[order] for array in (at, centre, lower, upper, share)
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
        centre - share * (centre - lower),
        centre + share * (upper - centre),
        color=BLUE,
        alpha=0.35,
        linewidth=0,
        label="epistemic part",
    )
    axes.plot(at, centre, color=BLUE, linewidth=1.8, label=f"predicted {line}")
    if points is not None:
        axes.scatter(*points, color=DARK, label="data", **dots(len(points[0])))

    axes.set_xlabel(xlabel)
    axes.set_ylabel(label)
    axes.margins(x=0.0)
    handles, names = axes.get_legend_handles_labels()
    legend_over_data(axes, dict(zip(names, handles, strict=True)))
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
