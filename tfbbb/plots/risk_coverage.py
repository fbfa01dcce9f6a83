"""What is gained by answering the surest rows only."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfbbb.plots.arguments import check_prediction
from tfbbb.plots.style import CYCLE, DARK, drawn_axes, legend_over_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tfbbb.prediction import Predictive


def risk_coverage(
    prediction: "Predictive",
    y: npt.ArrayLike,
    *,
    by: str | Sequence[str] | None = None,
    label: str | None = None,
    axes: "Axes | None" = None,
) -> "Axes":
    """Draws the mean loss of the rows that a prediction is surest of, share by share.

    At coverage c it is the mean loss of the share c of the rows of the lowest
    uncertainty (El-Yaniv and Wiener 2010): 1 for a wrong class, the squared error of
    the mean for numbers. The oracle knows the losses; a random order gains nothing. The
    legend has the mean over the coverages, the area under the curve. Means of the first
    twentieth of the rows, which are of few, do not count for the limits of the vertical
    axis.

    Args:
        prediction: A `tfbbb.Predictive`.
        y: Targets in raw units; for classes their indices or one-hot rows.
        by: An uncertainty, or several: `"entropy"`, `"mutual_information"`,
            `"epistemic"`, `"aleatoric"` or `"variance"`. By default the entropy of
            classes, the variance of numbers.
        label: Name and units of the mean loss.
        axes: Where to draw, by default on a new figure.

    Returns:
        The axes.

    Raises:
        ValueError: The prediction is none; the targets do not fit it; or there is no
            such uncertainty, none at all, or more than are told apart by colour.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[1.0], [2.0]])
    >>> from matplotlib.figure import Figure
    >>> axes = risk_coverage(
    ...     prediction, prediction.mean + [[1.0], [2.0]], axes=Figure().subplots()
    ... )
    >>> axes.lines[-1].get_ydata()
    array([1. , 2.5])
    """
    from tfbbb import metrics
    from tfbbb.metrics.risk_coverage import row_losses
    from tfbbb.metrics.targets import checked_targets, is_of_classes

    check_prediction(prediction)
    named = _names(prediction, by)
    targets = checked_targets(prediction, y, "any", "risk_coverage")
    curves = {
        name: metrics.risk_coverage_curve(prediction, y, by=name) for name in named
    }
    losses = np.asarray(row_losses(prediction, targets))
    coverage = 100 * np.arange(1, len(losses) + 1) / len(losses)
    oracle = np.cumsum(np.sort(losses)) / np.arange(1, len(losses) + 1)
    axes = drawn_axes(axes)

    axes.axhline(
        losses.mean(),
        color=DARK,
        linestyle="--",
        linewidth=1.2,
        label=f"random ({losses.mean():.4g})",
    )
    axes.plot(
        coverage,
        oracle,
        color=DARK,
        linestyle=":",
        linewidth=1.4,
        label=f"oracle ({oracle.mean():.4g})",
    )
    for (name, curve), color in zip(curves.items(), CYCLE, strict=False):
        axes.plot(
            100 * curve.coverage,
            curve.risk,
            color=color,
            linewidth=1.8,
            label=f"{name.replace('_', ' ')} ({curve.area:.4g})",
        )
    axes.set_xlim(0, 100)
    _set_limits(axes, [oracle, *(curve.risk for curve in curves.values())])
    axes.set_xlabel("rows answered, the surest first (%)")
    loss = "error rate" if is_of_classes(prediction) else "mean squared error"
    axes.set_ylabel(label or loss)
    handles, labels = axes.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    # Means of few rows are at the left, and may be high.
    legend_over_data(axes, shown, "(mean over the coverages)", loc="upper right")
    return axes


def _names(prediction: Any, by: str | Sequence[str] | None) -> list[str]:
    if by is None:
        from tfbbb.metrics.risk_coverage import OF_NUMBERS
        from tfbbb.metrics.uncertainty import named_uncertainty

        return [named_uncertainty(prediction, by, OF_NUMBERS)]
    names = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if not 0 < len(names) <= len(CYCLE):
        raise ValueError(
            f"`by` must name 1 to {len(CYCLE)} uncertainties. Received: by={by!r}"
        )
    return names


def _set_limits(axes: "Axes", curves: list[np.ndarray]) -> None:
    settled = np.concatenate([curve[len(curve) // 20 :] for curve in curves])
    low, high = settled.min(), settled.max()
    margin = 0.08 * (high - low) or 0.5
    axes.set_ylim(low - margin, high + margin)
