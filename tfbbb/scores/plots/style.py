"""Colours, axes and legends that all plots share."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# The colours of Okabe and Ito (2008), which colour-blind readers can distinguish,
# without yellow, which is too light for lines on white.
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)

# Predicted and expected values are grey, so that observations stand out.
DARK = "0.35"
LIGHT = "0.78"
PALE = "0.90"

WIDE = (8.0, 4.5)
SQUARE = (5.0, 5.0)


def drawn_axes(axes: "Axes | None", size: tuple[float, float] = WIDE) -> "Axes":
    """Returns the axes to draw on, in the common style."""
    if axes is None:
        # Pyplot figures are shown automatically in notebooks.
        from matplotlib import pyplot

        axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    elif not hasattr(axes, "spines"):
        raise TypeError(
            "`axes` must be Matplotlib axes, or None for a new figure. "
            f"Received: axes={axes!r}"
        )
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def strip_above(axes: "Axes") -> "Axes":
    """Adds a flat plot above the axes, which shares their horizontal axis."""
    strip = axes.inset_axes((0.0, 1.03, 1.0, 0.16), sharex=axes)
    strip.spines[["top", "right"]].set_visible(False)
    strip.tick_params(axis="x", labelbottom=False, length=0)
    strip.tick_params(axis="y", labelsize="small")
    return strip


def count_with_ticks(axes: "Axes") -> None:
    """Puts the ticks of the horizontal axis at integers."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def legend_over_data(
    axes: "Axes",
    handles: "Mapping[str, Artist] | None" = None,
    title: str | None = None,
    loc: Literal["upper left", "upper right"] = "upper left",
) -> None:
    """Adds a legend in two columns and extends the axes above the data to fit it.

    By default it has what is drawn with a label.
    """
    if handles is None:
        artists, labels = axes.get_legend_handles_labels()
        handles = dict(zip(labels, artists, strict=True))
    legend = axes.legend(
        handles.values(),
        handles.keys(),
        frameon=False,
        loc=loc,
        ncols=2,
        title=title,
        alignment="left",
    )
    lines = math.ceil(len(handles) / 2) + (title is not None)
    font = legend.get_texts()[0].get_fontproperties()
    height = (1.5 * lines + 1.0) * font.get_size_in_points()
    share = min(height / size_in_points(axes)[1], 0.5)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, bottom + (top - bottom) / (1.0 - share))


def size_in_points(axes: "Axes") -> tuple[float, float]:
    """Returns width and height of the axes."""
    extent = axes.get_window_extent()
    points = extent.transformed(axes.figure.dpi_scale_trans.inverted())
    return 72.0 * points.width, 72.0 * points.height


def legend_beside_data(
    axes: "Axes",
    handles: "Sequence[Artist]",
    loc: Literal["best", "lower right"] = "best",
) -> None:
    """Adds a translucent legend where the axes are free."""
    axes.legend(
        handles=handles, loc=loc, facecolor="white", edgecolor="none", framealpha=0.8
    )


def dots(number: int) -> dict[str, Any]:
    """Returns the style of a scatter plot: more dots are smaller and fainter."""
    return {
        "s": min(max(18.0 * (150.0 / number) ** 0.5, 3.0), 18.0),
        "alpha": min(max((300.0 / number) ** 0.5, 0.3), 1.0),
        "edgecolors": "white",
        "linewidths": 0.5 if number <= 300 else 0.0,
        "zorder": 3,
    }
