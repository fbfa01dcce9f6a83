"""A plot of several predictions of one curve: point estimates and distributions."""

from collections.abc import Mapping
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
    CYCLE,
    DARK,
    dots,
    drawn_axes,
    legend_over_data,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from tfbbb.prediction import Predictive


def posterior_comparison(
    predictions: "Mapping[str, Predictive | npt.ArrayLike]",
    x: npt.ArrayLike,
    *,
    data: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    truth: npt.ArrayLike | None = None,
    level: float = 0.9,
    target: int = 0,
    xlabel: str = "input",
    label: str = "target",
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots several predictions over one input, each as a line, with its band.

    A `tfbbb.Predictive` is its mean with the central interval of y of probability
    `level`; a curve of numbers, such as the fit of maximum likelihood, is a line alone.
    With predictions of models of growing numbers of rows, the picture shows what more
    data do to the band.

    Args:
        predictions: By name, a `tfbbb.Predictive` at the inputs `x`, or numbers `[n]`.
        x: The input `[n]`, usually a grid, in any order.
        data: Inputs `[m]` and targets `[m]` (or `[m, k]`) to plot as dots.
        truth: The true curve `[n]`, as a dashed line.
        level: Probability of the bands.
        target: Index of the target to plot.
        xlabel: Name and units of the input.
        label: Name and units of the target.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: There is no prediction or there are more than colours; a prediction
            is of classes; arrays differ in length, are empty or are not finite; `level`
            is not strictly between 0 and 1; or there is no such `target`.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> x = np.linspace(-1.0, 1.0, 20)
    >>> from matplotlib.figure import Figure
    >>> axes = posterior_comparison(
    ...     {"least squares": 0.5 * x, "Bayes": model.predictive(x[:, np.newaxis])},
    ...     x,
    ...     axes=Figure().subplots(),
    ... )
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['least squares', 'Bayes: 90 % of y']
    """
    if not 0 < len(predictions) <= len(CYCLE):
        raise ValueError(
            f"There must be 1 to {len(CYCLE)} predictions. Received: {len(predictions)}"
        )
    tails = 0.5 - checked_level("level", level) / 2
    at = vector("x", x)
    order = np.argsort(at, kind="stable")
    curves = {
        name: _curve(name, given, tails, target) for name, given in predictions.items()
    }
    for name, parts in curves.items():
        check_same_length(**{"x": at, name: parts[0]})
    true = None if truth is None else vector("truth", truth)
    if true is not None:
        check_same_length(x=at, truth=true)
    points = None
    if data is not None:
        points = (
            vector("inputs of the data", data[0]),
            column("targets of the data", data[1], target),
        )
        check_same_length(inputs=points[0], targets=points[1])
    axes = drawn_axes(axes)

    handles: dict[str, Artist] = {}
    # Bands lie below all lines.
    for parts, color in zip(curves.values(), CYCLE, strict=False):
        if len(parts) > 1:
            lower, upper = (part[order] for part in parts[1:])
            axes.fill_between(
                at[order], lower, upper, color=color, alpha=0.2, linewidth=0
            )
    for (name, parts), color in zip(curves.items(), CYCLE, strict=False):
        (line,) = axes.plot(at[order], parts[0][order], color=color, linewidth=1.8)
        what = f": {100 * level:g} % of y" if len(parts) > 1 else ""
        handles[f"{name}{what}"] = line
    if true is not None:
        (handles["truth"],) = axes.plot(
            at[order], true[order], color=DARK, linestyle="--", linewidth=1.2
        )
    if points is not None:
        handles["data"] = axes.scatter(*points, color=DARK, **dots(len(points[0])))
    axes.set_xlabel(xlabel)
    axes.set_ylabel(label)
    axes.margins(x=0.0)
    legend_over_data(axes, handles)
    return axes


def _curve(
    name: str, given: "Predictive | npt.ArrayLike", tail: float, target: int
) -> tuple[np.ndarray, ...]:
    """Returns the line of a prediction, and the bounds of its band if it has one."""
    if not is_prediction(given):
        return (vector(name, given),)
    check_of_numbers(given)
    lower, upper = np.moveaxis(given.quantile([tail, 1.0 - tail]), 1, 0)
    return (
        column("mean", given.mean, target),
        column("quantiles", lower, target),
        column("quantiles", upper, target),
    )
