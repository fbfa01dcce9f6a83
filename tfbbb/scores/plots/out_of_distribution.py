"""A plot of the uncertainty of rows in and out of distribution."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfbbb.base.numbers import positive_integer
from tfbbb.scores.plots.arguments import is_prediction, vector
from tfbbb.scores.plots.style import (
    BLUE,
    VERMILION,
    drawn_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tfbbb.prediction import Predictive

_LABELS = {
    "entropy": "entropy of the predicted class (nats)",
    "mutual_information": "mutual information of class and weights (nats)",
    "epistemic": "epistemic variance",
    "aleatoric": "aleatoric variance",
    "variance": "predictive variance",
}


def out_of_distribution(
    inside: "Predictive | npt.ArrayLike",
    outside: "Predictive | npt.ArrayLike",
    *,
    by: str = "epistemic",
    log: bool = False,
    bins: int = 30,
    names: tuple[str, str] = ("in distribution", "out of distribution"),
    label: str | None = None,
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots histograms of the uncertainty of rows in and out of distribution.

    The legend shows the area under the ROC curve (AUROC): the probability that a row
    from outside is more uncertain than a row from inside; ties count half (Hendrycks
    and Gimpel 2017).

    Args:
        inside: A `tfbbb.Predictive` of rows like those of training; or their scores.
        outside: A `tfbbb.Predictive` of other rows by the same model; or their scores.
        by: The uncertainty of predictions: `"entropy"`, `"mutual_information"`,
            `"epistemic"`, `"aleatoric"` or `"variance"`. Variances are summed over
            targets or classes.
        log: Whether to use a logarithmic axis; requires positive scores.
        bins: Number of bins.
        names: Names of the two sets of rows.
        label: Name and units of the scores; by default those of `by`.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: The scores are not one number for each row, are empty or not finite,
            or not positive with `log`; the predictions have no such uncertainty; or
            `bins` is not a positive integer.

    Example:

    >>> from matplotlib.figure import Figure
    >>> inside, outside = [0.1, 0.2], [0.3, 0.4, 0.15]
    >>> axes = out_of_distribution(inside, outside, axes=Figure().subplots())
    >>> axes.get_legend().get_title().get_text()
    'AUROC 0.833'
    """
    bins = positive_integer("bins", bins)
    low, high = _scores("inside", inside, by), _scores("outside", outside, by)
    if log and min(low.min(), high.min()) <= 0.0:
        raise ValueError(
            "A logarithmic axis allows positive scores only; pass `log=False`. "
            f"Received: a score of {min(low.min(), high.min()):g}"
        )
    edges = _edges(np.concatenate([low, high]), bins, log)
    axes = drawn_axes(axes)

    for values, color, name in zip((low, high), (BLUE, VERMILION), names, strict=True):
        shares = 100 * np.histogram(values, edges)[0] / len(values)
        axes.stairs(shares, edges, fill=True, color=color, alpha=0.35)
        axes.stairs(
            shares,
            edges,
            color=color,
            linewidth=1.6,
            zorder=2,
            label=f"{name} (n = {len(values)})",
        )
    if log:
        axes.set_xscale("log")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel(label or (_LABELS[by] if is_prediction(inside) else "score"))
    axes.set_ylabel("rows (%)")
    axes.legend(frameon=False, title=f"AUROC {_auroc(low, high):.3f}", alignment="left")
    return axes


def _scores(name: str, given: "Predictive | npt.ArrayLike", by: str) -> np.ndarray:
    if not is_prediction(given):
        return vector(name, given)
    from tfbbb.scores.metrics.uncertainty import check_uncertainty, uncertainty

    check_uncertainty(by)
    return vector(name, uncertainty(given, by))


def _edges(values: np.ndarray, bins: int, log: bool) -> np.ndarray:
    if log:
        return np.exp(_edges(np.log(values), bins, log=False))
    low, high = values.min(), values.max()
    # Begin at 0 if the scores, such as entropies, come close to 0.
    return np.histogram_bin_edges(
        values, bins, range=(0.0 if 0.0 < low < 0.1 * high else low, high)
    )


def _auroc(low: np.ndarray, high: np.ndarray) -> float:
    from sklearn.metrics import roc_auc_score

    is_outside = np.repeat([0, 1], [len(low), len(high)])
    return float(roc_auc_score(is_outside, np.concatenate([low, high])))
