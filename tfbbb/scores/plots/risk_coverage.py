"""A plot of the loss of the most certain rows against their share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.scores.plots.arguments import check_prediction
from tfbbb.scores.plots.style import (
    CYCLE,
    DARK,
    drawn_axes,
    legend_over_data,
)

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
    """Plots the mean loss of the most certain rows against their share.

    At coverage c the curve is the mean loss of the share c of the rows with the lowest
    uncertainty (El-Yaniv and Wiener 2010). The loss is 1 for a wrong class, and the
    squared error of the mean for numbers. The oracle sorts the rows by their losses,
    and the dashed line is the expectation for a random order. The legend shows the mean
    over the coverages, the area under the curve. The limits of the vertical axis ignore
    the first twentieth of the curves, which averages few rows.

    Args:
        prediction: A `tfbbb.Predictive`.
        y: Targets in raw units; for classes their indices or one-hot rows.
        by: One or several of `"entropy"`, `"mutual_information"`, `"epistemic"`,
            `"aleatoric"` and `"variance"`. Defaults to the entropy for classes and to
            the variance for numbers.
        label: Name and units of the mean loss.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: `prediction` is not a `tfbbb.Predictive`; the targets do not fit it;
            or `by` is unknown, empty, or has more names than there are colours.

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
    from tfbbb.prediction.target_scores import is_of_classes
    from tfbbb.scores import metrics
    from tfbbb.scores.metrics.risk_coverage import row_losses
    from tfbbb.scores.metrics.targets import checked_targets

    check_prediction(prediction)
    named = _list_uncertainties(prediction, by)
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
    # The means at the left average few rows and may be high.
    legend_over_data(axes, shown, "(mean over the coverages)", loc="upper right")
    return axes


def _list_uncertainties(
    prediction: "Predictive", by: str | Sequence[str] | None
) -> list[str]:
    if by is None:
        from tfbbb.scores.metrics.risk_coverage import OF_NUMBERS
        from tfbbb.scores.metrics.uncertainty import named_uncertainty

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
