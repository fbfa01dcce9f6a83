"""A plot of the accuracy of classes against their probability."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.base.sampling_band import sampling_band
from tfbbb.scores.plots.arguments import checked_level, is_prediction
from tfbbb.scores.plots.style import (
    BLUE,
    DARK,
    LIGHT,
    SQUARE,
    VERMILION,
    drawn_axes,
    legend_beside_data,
    strip_above,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tfbbb.prediction import Predictive
    from tfbbb.scores.metrics import ReliabilityDiagram


def reliability_diagram(
    prediction: "Predictive | ReliabilityDiagram",
    y: npt.ArrayLike | None = None,
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

    Args:
        prediction: A `tfbbb.Predictive` of classes; or the result of
            `tfbbb.metrics.reliability_diagram`.
        y: Indices of the true classes or one-hot rows; None with the result of
            `tfbbb.metrics.reliability_diagram`.
        bins: Number of bins from 0 to 1, for a `tfbbb.Predictive`.
        confidence: Probability of a bar.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: `y` is missing, does not fit the prediction, or is given together
            with a `ReliabilityDiagram`; the prediction is of numbers; `bins` is not a
            positive integer; or `confidence` is not strictly between 0 and 1.

    Example:

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from tfbbb.scores.metrics import ReliabilityDiagram
    >>> measured = ReliabilityDiagram(
    ...     edges=np.array([0.0, 0.5, 1.0]),
    ...     counts=np.array([0, 20]),
    ...     confidence=np.array([np.nan, 0.9]),
    ...     accuracy=np.array([np.nan, 0.65]),
    ... )
    >>> axes = reliability_diagram(measured, axes=Figure().subplots())
    >>> axes.get_legend_handles_labels()[1]
    ['calibrated', 'its 95 % sampling band', 'beyond the band']
    """
    checked_level("confidence", confidence)
    measured = _measure(prediction, y, bins)
    filled = measured.counts > 0
    rows, expected = measured.counts[filled], measured.confidence[filled]
    observed = measured.accuracy[filled]
    lower, upper = sampling_band(rows, np.minimum(expected, 1.0), confidence)
    hits = np.round(rows * observed)
    outside = (hits < lower) | (hits > upper)
    axes = drawn_axes(axes, SQUARE)

    axes.plot(
        [0, 100],
        [0, 100],
        color=DARK,
        linestyle="--",
        linewidth=1.2,
        label="calibrated",
    )
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
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    axes.set_xlabel("probability of the predicted class (%)")
    axes.set_ylabel("rows of that class (%)")
    axes.set_aspect("equal")
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


def _measure(
    prediction: "Predictive | ReliabilityDiagram", y: npt.ArrayLike | None, bins: int
) -> "ReliabilityDiagram":
    if is_prediction(prediction):
        if y is None:
            raise ValueError(
                "Pass the true classes `y` together with a `tfbbb.Predictive`. "
                "Received: y=None"
            )
        from tfbbb.scores import metrics

        return metrics.reliability_diagram(prediction, y, bins=bins)
    if y is not None or not hasattr(prediction, "accuracy"):
        raise ValueError(
            "Pass a `tfbbb.Predictive` with `y`, or what "
            "`tfbbb.metrics.reliability_diagram` returns without `y`. Received: "
            f"prediction of type {type(prediction).__name__}, y of type "
            f"{type(y).__name__}"
        )
    return prediction
