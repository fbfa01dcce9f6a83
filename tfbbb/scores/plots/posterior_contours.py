"""A plot of approximations of a two-dimensional posterior over its contours."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tfbbb.scores.plots.arguments import checked_level
from tfbbb.scores.plots.style import (
    CYCLE,
    DARK,
    LIGHT,
    PALE,
    SQUARE,
    dots,
    drawn_axes,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

LogDensity: TypeAlias = Callable[[np.ndarray], npt.ArrayLike]
Approximation: TypeAlias = (
    LogDensity | tuple[npt.ArrayLike, npt.ArrayLike] | npt.ArrayLike
)
# Points of the grid along one side.
_GRID = 201
# Standard deviations of a normal on each side of its mean that a plot shows.
_REACH = 3.5


def posterior_contours(
    exact: LogDensity | None,
    approximations: Mapping[str, Approximation],
    *,
    limits: tuple[tuple[float, float], tuple[float, float]] | None = None,
    levels: Sequence[float] = (0.5, 0.9),
    labels: tuple[str, str] = ("first weight", "second weight"),
    axes: "Axes | None" = None,
) -> "Axes":
    """Plots approximations of a posterior of two weights over its own contours.

    Each contour encloses the smallest region of a given probability. The regions of the
    exact posterior are grey, the contours of approximations are lines in colour, and
    samples are dots. A cross marks the mean of a normal, and a point estimate.

    Args:
        exact: Log density of the exact posterior up to a constant: takes points
            `[n, 2]` and returns `[n]`. None if it is not known.
        approximations: By name, one of: mean `[2]` and covariance `[2, 2]` of a normal,
            as a tuple; a log density like `exact`; samples `[n, 2]`; or a point `[2]`.
        limits: Limits of the two axes; by default around normals and samples.
        levels: Probabilities of the regions.
        labels: Names of the two weights.
        axes: Axes to draw on; a new figure by default.

    Returns:
        The axes.

    Raises:
        ValueError: There are more approximations than colours, or none and no `exact`;
            one has another form; a density is finite nowhere; a level is not strictly
            between 0 and 1; or limits are missing where only densities are given.

    Example:

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> def banana(w):
    ...     return -0.5 * w[:, 0] ** 2 - 2.0 * (w[:, 1] - w[:, 0] ** 2) ** 2
    >>> axes = posterior_contours(
    ...     banana,
    ...     {"Laplace": (np.zeros(2), np.diag([1.0, 0.25])), "MAP": np.zeros(2)},
    ...     limits=((-3.0, 3.0), (-2.0, 5.0)),
    ...     axes=Figure().subplots(),
    ... )
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['exact', 'Laplace', 'MAP']
    """
    if len(approximations) > len(CYCLE) or not (approximations or exact):
        raise ValueError(
            f"There must be an exact density or up to {len(CYCLE)} approximations. "
            f"Received: {len(approximations)} approximations"
        )
    probabilities = sorted((checked_level("levels", x) for x in levels), reverse=True)
    checked = {name: _checked(name, given) for name, given in approximations.items()}
    limits = limits or _limits_around(checked)
    sides = [np.linspace(low, high, _GRID) for low, high in limits]
    points = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    axes = drawn_axes(axes, SQUARE)
    handles: dict[str, Artist] = {}
    if exact is not None:
        handles["exact"] = _draw_regions(
            axes, sides, _density("exact", exact, points), probabilities
        )
    for (name, (kind, given)), color in zip(checked.items(), CYCLE, strict=False):
        if kind in ("normal", "density"):
            log_density = _log_normal(*given) if kind == "normal" else given
            density = _density(name, log_density, points)
            handles[name] = _draw_lines(axes, sides, density, probabilities, color)
        if kind == "samples":
            handles[name] = axes.scatter(
                *given.T, color=color, label=name, **dots(len(given))
            )
        if kind in ("normal", "point"):
            at = given[0] if kind == "normal" else given
            (cross,) = axes.plot(
                *at, color=color, marker="X", markeredgecolor="white", linestyle=""
            )
            cross.set(markersize=8, zorder=4)
            handles.setdefault(name, cross)
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.legend(
        handles.values(),
        handles.keys(),
        facecolor="white",
        edgecolor="none",
        framealpha=0.8,
    )
    return axes


def _checked(name: str, given: Approximation) -> tuple[str, Any]:
    """Returns the kind of an approximation, and its numbers as arrays."""
    if callable(given):
        return "density", given
    message = (
        f"The approximation {name!r} must be a tuple of mean [2] and covariance "
        "[2, 2], a log density, samples [n, 2] or a point [2]. Received: "
    )
    if isinstance(given, tuple) and len(given) == 2 and np.ndim(given[1]) == 2:
        mean, covariance = (np.asarray(part, float) for part in given)
        symmetric = covariance.shape == (2, 2) and np.allclose(covariance, covariance.T)
        if (
            mean.shape != (2,)
            or not symmetric
            or np.linalg.eigvalsh(covariance)[0] <= 0
        ):
            raise ValueError(f"{message}mean {given[0]!r}, covariance {given[1]!r}")
        return "normal", (mean, covariance)
    array = np.asarray(given, float)
    if array.shape[-1:] != (2,) or array.ndim > 2 or not np.isfinite(array).all():
        raise ValueError(f"{message}an array of shape {array.shape}")
    return ("samples" if array.ndim == 2 else "point"), array


def _limits_around(
    checked: Mapping[str, tuple[str, Any]],
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Returns limits that show all normals and samples."""
    corners = []
    for kind, given in checked.values():
        if kind == "normal":
            reach = _REACH * np.sqrt(np.diag(given[1]))
            corners += [given[0] - reach, given[0] + reach]
        elif kind == "samples":
            margin = 0.1 * np.ptp(given, axis=0)
            corners += [given.min(axis=0) - margin, given.max(axis=0) + margin]
    if not corners:
        raise ValueError(
            "Densities and points do not say how far to draw: give `limits`, e.g. "
            "`((-3.0, 3.0), (-3.0, 3.0))`. Received: limits=None"
        )
    lower, upper = np.min(corners, axis=0), np.max(corners, axis=0)
    return (float(lower[0]), float(upper[0])), (float(lower[1]), float(upper[1]))


def _log_normal(mean: np.ndarray, covariance: np.ndarray) -> LogDensity:
    precision = np.linalg.inv(covariance)

    def log_density(points: np.ndarray) -> np.ndarray:
        away = points - mean
        return -0.5 * np.einsum("ni,ij,nj->n", away, precision, away)

    return log_density


def _density(name: str, log_density: LogDensity, points: np.ndarray) -> np.ndarray:
    """Returns densities on the grid that sum to 1, [_GRID, _GRID]."""
    logs = np.asarray(log_density(points), float)
    if logs.shape != (len(points),) or not np.isfinite(logs.max()):
        raise ValueError(
            f"The log density {name!r} must return one number for each of n points, "
            "and be finite somewhere within the limits. "
            f"Received: an array of shape {logs.shape} for {len(points)} points"
        )
    density = np.exp(logs - logs.max()).reshape(_GRID, _GRID)
    return np.asarray(density / density.sum())


def _thresholds(density: np.ndarray, probabilities: Sequence[float]) -> list[float]:
    """Returns the densities at the borders of the smallest regions, ascending."""
    ordered = np.sort(density.ravel())[::-1]
    within = np.cumsum(ordered)
    places = np.searchsorted(within, probabilities)
    return [float(ordered[min(place, ordered.size - 1)]) for place in places]


def _draw_regions(
    axes: "Axes",
    sides: Sequence[np.ndarray],
    density: np.ndarray,
    probabilities: Sequence[float],
) -> "Artist":
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Patch

    thresholds = _distinct(_thresholds(density, probabilities))
    shades = LinearSegmentedColormap.from_list("exact", [PALE, LIGHT])
    colors = shades(np.linspace(0.0, 1.0, len(thresholds)))
    levels = [*thresholds, max(float(density.max()), thresholds[-1] * 1.001)]
    axes.contourf(*sides, density, levels=levels, colors=colors, zorder=1)
    return Patch(facecolor=LIGHT, edgecolor=DARK, linewidth=0.0, label="exact")


def _draw_lines(
    axes: "Axes",
    sides: Sequence[np.ndarray],
    density: np.ndarray,
    probabilities: Sequence[float],
    color: str,
) -> "Artist":
    from matplotlib.lines import Line2D

    thresholds = _distinct(_thresholds(density, probabilities))
    axes.contour(
        *sides, density, levels=thresholds, colors=[color], linewidths=1.6, zorder=2
    )
    return Line2D([], [], color=color, linewidth=1.6)


def _distinct(thresholds: Sequence[float]) -> list[float]:
    """Returns ascending thresholds: two regions of a coarse grid may be the same."""
    return sorted(set(thresholds))
