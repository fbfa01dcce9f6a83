"""An explanation as a picture."""

from typing import TYPE_CHECKING

import numpy as np

from tfbbb.judging.explain.effects import Effect
from tfbbb.judging.explain.explanation import Explanation
from tfbbb.judging.explain.importance import Importance
from tfbbb.judging.explain.variance_split import VarianceSplit
from tfbbb.scores.plots.style import (
    BLUE,
    CYCLE,
    DARK,
    LIGHT,
    VERMILION,
    drawn_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ACROSS = 3
_MOST_BARS = 15
_MOST_EFFECTS = 9
_MOST_CLASSES = 5
_MOST_LETTERS = 24
_MOST_DOTS = 5


def picture(explanation: Explanation) -> "Figure":
    """Draws importance, effects and the parts of the uncertainty.

    Args:
        explanation: The result of `tfbbb.explain.explain`.

    Returns:
        A Matplotlib figure, to save with `savefig`.
    """
    from matplotlib.figure import Figure

    effects = explanation.effects[:_MOST_EFFECTS]
    lines = -(-len(effects) // _ACROSS)
    bars = min(len(explanation.importance or ()), _MOST_BARS)
    top = max(2.6, 0.8 + 0.25 * bars)
    figure = Figure(figsize=(10.0, top + 2.5 * lines), layout="constrained")
    above, below = figure.subfigures(
        2, 1, height_ratios=[top, max(2.5 * lines, 0.01)], squeeze=False
    )[:, 0]
    if explanation.importance is None:
        _draw_split(explanation.split, above.subplots())
    else:
        left, right = above.subplots(1, 2)
        _draw_importance(explanation.importance, left)
        _draw_split(explanation.split, right)
    if effects:
        grid = below.subplots(lines, _ACROSS, squeeze=False).ravel()
        limits = _common_limits(effects)
        for axes, effect in zip(grid, effects, strict=False):
            _draw_effect(effect, axes, explanation.classes, explanation.target)
            axes.set_ylim(*limits)
        for axes in grid[len(effects) :]:
            axes.set_visible(False)
    return figure


def _draw_importance(importance: list[Importance], axes: "Axes") -> None:
    """Draws the nats that each column is worth, with two standard errors."""
    shown = importance[:_MOST_BARS][::-1]
    axes = drawn_axes(axes)
    places = np.arange(len(shown))
    nats = [column.nats for column in shown]
    errors = [2.0 * column.nats_standard_error for column in shown]
    axes.barh(places, nats, color=BLUE, height=0.65)
    axes.errorbar(nats, places, xerr=errors, fmt="none", ecolor=DARK, elinewidth=1.2)
    axes.axvline(0.0, color=DARK, linewidth=0.8)
    axes.set_yticks(places, [_shortened(column.name) for column in shown])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("log-likelihood lost without the column (nats per row)")


def _common_limits(effects: list[Effect]) -> tuple[float, float]:
    """Returns limits of the vertical axis that show all effects at one scale."""
    least = min(float(effect.lower.min()) for effect in effects)
    greatest = max(float(effect.upper.max()) for effect in effects)
    margin = 0.05 * (greatest - least) or 1.0
    return least - margin, greatest + margin


def _draw_effect(
    effect: Effect, axes: "Axes", classes: tuple[str, ...] = (), target: str = ""
) -> None:
    """Draws the mean prediction against a column, with its epistemic band."""
    axes = drawn_axes(axes)
    curves = [(effect.mean, effect.lower, effect.upper, "")]
    if effect.mean.ndim == 2:
        curves = _curves_of_classes(effect, classes)
    numbers = effect.between and not isinstance(effect.values[0], str)
    places = np.asarray(effect.values if numbers else range(len(effect.values)), float)
    for color, (mean, lower, upper, label) in zip(CYCLE, curves, strict=False):
        if numbers:
            axes.fill_between(places, lower, upper, color=color, alpha=0.2, linewidth=0)
            few = "o" if len(places) <= _MOST_DOTS else None
            axes.plot(places, mean, color=color, lw=1.6, marker=few, label=label)
        else:
            axes.vlines(places, lower, upper, color=color, alpha=0.4, linewidth=3)
            axes.plot(
                places, mean, color=color, marker="o", markersize=5, ls="", label=label
            )
    if effect.date:
        axes.locator_params(axis="x", nbins=3)
        axes.xaxis.set_major_formatter(lambda value, _: effect.show(value)[:10])
    if not numbers:
        texts = [_shortened(str(text)) or "(missing)" for text in effect.values]
        axes.set_xticks(places, texts, rotation=30 if len(texts) > 3 else 0, ha="right")
        axes.set_xlim(-0.6, len(places) - 0.4)
    axes.set_xlabel(_shortened(effect.name))
    axes.set_ylabel("probability" if classes else _shortened(target))
    if len(curves) > 1 or curves[0][3]:
        axes.legend(frameon=False, fontsize="small")


def _draw_split(split: VarianceSplit, axes: "Axes") -> None:
    """Draws the uncertainty of the rows, sorted, in its two parts."""
    axes = drawn_axes(axes)
    order = np.argsort(split.epistemic + split.aleatoric)
    places = np.linspace(0.0, 100.0, len(order)) if len(order) > 1 else np.zeros(1)
    parts = [split.aleatoric[order], split.epistemic[order]]
    label, unit = split.measure, " (nats)"
    if split.measure == "variance":
        # In units of the target, shares of the standard deviation.
        total = parts[0] + parts[1]
        scale = np.divide(
            1.0, np.sqrt(total), out=np.zeros_like(total), where=total > 0
        )
        parts = [part * scale for part in parts]
        label, unit = "standard deviation", ""
    axes.stackplot(
        places,
        parts,
        labels=["noise (aleatoric)", "lack of data (epistemic)"],
        colors=[LIGHT, VERMILION],
    )
    axes.set_xlim(0.0, 100.0)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("rows, by uncertainty (%)")
    axes.set_ylabel(f"{label}{unit}")
    axes.legend(frameon=False, loc="upper left")


def _curves_of_classes(
    effect: Effect, classes: tuple[str, ...]
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, str]]:
    number = effect.mean.shape[1]
    names = list(classes) or [str(index) for index in range(number)]
    chosen = [1]
    if number > 2:
        # In their own order, so that a class has one colour in all pictures.
        commonest = np.argsort(-effect.mean.mean(axis=0))[:_MOST_CLASSES]
        chosen = sorted(commonest.tolist())
    return [
        (
            effect.mean[:, index],
            effect.lower[:, index],
            effect.upper[:, index],
            _shortened(names[index]),
        )
        for index in chosen
    ]


def _shortened(text: str) -> str:
    # A dollar sign would begin a formula.
    if len(text) > _MOST_LETTERS:
        text = f"{text[: _MOST_LETTERS - 1]}…"
    return text.replace("$", r"\$")
