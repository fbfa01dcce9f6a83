"""A plot of evidence and its bounds against the size of a model."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfbbb.scores.plots.arguments import check_same_length, vector
from tfbbb.scores.plots.style import (
    CYCLE,
    count_with_ticks,
    drawn_axes,
    legend_beside_data,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def evidence_curve(
    sizes: npt.ArrayLike,
    curves: "Mapping[str, Sequence[Any] | npt.ArrayLike]",
    *,
    xlabel: str = "degree",
    label: str = "log evidence (nats)",
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots evidence, bounds or estimates of it against the size of models.

    A ring marks the largest value of each curve: the model that it chooses. Error bars
    are two standard errors.

    Args:
        sizes: Sizes of the models `[n]`, such as degrees of a polynomial.
        curves: By name, numbers `[n]` or n `tfbbb.lab.evidence.EvidenceEstimate`,
            larger for better models.
        xlabel: Name of the size.
        label: Name and units of the values.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: There is no curve, there are more curves than colours, or a curve
            has another length than `sizes` or is not finite.

    Example:

    >>> from matplotlib.figure import Figure
    >>> axes = evidence_curve(
    ...     [1, 2, 3],
    ...     {"evidence": [-30.0, -12.0, -14.0], "ELBO": [-31.0, -13.0, -17.0]},
    ...     axes=Figure().subplots(),
    ... )
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['evidence: best at 2', 'ELBO: best at 2']
    """
    if not 0 < len(curves) <= len(CYCLE):
        raise ValueError(
            f"There must be 1 to {len(CYCLE)} curves. Received: {len(curves)}"
        )
    at = vector("sizes", sizes)
    points = {}
    for name, given in curves.items():
        values = vector(name, [getattr(x, "value", x) for x in np.ravel(given)])
        errors = vector(
            "standard errors",
            [getattr(x, "standard_error", 0.0) for x in np.ravel(given)],
        )
        check_same_length(**{"sizes": at, name: values})
        points[name] = values, errors
    axes = drawn_axes(axes)

    handles = []
    for (name, (values, errors)), color in zip(points.items(), CYCLE, strict=False):
        best = int(values.argmax())
        order = np.argsort(at, kind="stable")
        (line,) = axes.plot(
            at[order],
            values[order],
            color=color,
            linewidth=1.8,
            marker="o",
            markersize=5,
            markeredgecolor="white",
            label=f"{name}: best at {at[best]:g}",
        )
        if errors.any():
            axes.vlines(at, values - 2.0 * errors, values + 2.0 * errors, color=color)
        axes.plot(
            at[best],
            values[best],
            color=color,
            marker="o",
            markersize=11,
            markerfacecolor="none",
            markeredgewidth=1.6,
            linestyle="",
        )
        handles.append(line)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(label)
    count_with_ticks(axes)
    legend_beside_data(axes, handles, loc="lower right")
    return axes
