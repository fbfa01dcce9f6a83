"""Our figures beside those of others, and the summary of what we lose."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from program import mean_and_error
from timing import markdown_table

WON, EVEN, LOST = "won", "within one standard error", "lost"
_MOST_NAMED = 8
# By table, method and split.
Values = Mapping[str, Mapping[str, Mapping[int, float]]]


@dataclass(frozen=True)
class Comparison:
    """One figure of ours beside that of another.

    Attributes:
        figure: What was measured, e.g. `log-likelihood`.
        on: Where, e.g. the name of the set.
        ours: Our figure.
        theirs: The other figure.
        rival: Whose the other figure is.
        larger_is_better: Whether the larger figure is the better one.
        error: Standard error of the difference; NaN if it is not known.
    """

    figure: str
    on: str
    ours: float
    theirs: float
    rival: str
    larger_is_better: bool = True
    error: float = math.nan

    @property
    def name(self) -> str:
        """The key of a cause in `causes.toml`."""
        return f"{self.figure}, {self.on}"

    @property
    def margin(self) -> float:
        """By how much our figure is better; NaN if one of them is not a number."""
        difference = self.ours - self.theirs
        return difference if self.larger_is_better else -difference

    @property
    def is_worse(self) -> bool:
        """Whether our figure is the worse one, as one that is not a number is."""
        return not self.margin >= 0.0

    @property
    def outcome(self) -> str:
        """`WON`, `LOST` or `EVEN`, where the margin is at most a standard error."""
        if abs(self.margin) <= self.error or self.margin == 0.0:
            return EVEN
        return LOST if self.is_worse else WON


def values(records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Values:
    """Returns a figure by table, method and split."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for record in sorted(records, key=lambda record: record["set"].lower()):
        figures = [record[name] for name in names if record.get(name) is not None]
        if figures:
            by_method = found.setdefault(record["set"], {})
            by_method.setdefault(record["method"], {})[record["split"]] = figures[0]
    return found


def compare_methods(
    records: Sequence[Mapping[str, Any]],
    rivals: Sequence[str],
    figures: Mapping[str, tuple[Sequence[str], bool]],
) -> list[Comparison]:
    """Returns the defaults beside each rival on each set, over their common splits."""
    found = []
    for figure, (names, larger) in figures.items():
        for name, by_method in values(records, names).items():
            ours = by_method.get("default", {})
            for rival in rivals:
                theirs = by_method.get(rival, {})
                splits = sorted(ours.keys() & theirs.keys())
                if splits:
                    pairs = [ours[s] for s in splits], [theirs[s] for s in splits]
                    found.append(compare_pairs(figure, name, *pairs, rival, larger))
    return found


def compare_pairs(
    figure: str,
    on: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    rival: str,
    larger_is_better: bool,
) -> Comparison:
    """Returns the comparison of paired figures, with the error of their difference."""
    _, error = mean_and_error(a - b for a, b in zip(ours, theirs, strict=True))
    means = mean_and_error(ours)[0], mean_and_error(theirs)[0]
    return Comparison(figure, on, *means, rival, larger_is_better, error)


def summarize_losses(compared: Mapping[str, Sequence[Comparison]]) -> str:
    """Returns how many comparisons are lost, and a line for each figure with losses."""
    counts, lines = [], []
    for program, found in compared.items():
        for figure in dict.fromkeys(each.figure for each in found):
            of_figure = [each for each in found if each.figure == figure]
            outcomes = Counter(each.outcome for each in of_figure)
            numbers = [str(outcomes[outcome]) for outcome in (WON, EVEN, LOST)]
            counts.append([program, figure, *numbers])
            worse = _worse(of_figure)
            if worse:
                lines.append(f"- **{program}, {figure}**: {worse}")
    total = Counter(each.outcome for found in compared.values() for each in found)
    return "\n\n".join(
        [
            f"Of {sum(total.values())} comparisons {total[WON]} are won, "
            f"{total[LOST]} are lost, and in {total[EVEN]} the difference is at most "
            "its standard error. With one split, or a published figure, the error is "
            "not known, and any difference counts.",
            markdown_table(["program", "figure", WON, EVEN, LOST], counts),
            "Where we lose, with our figure, the other one and whose it is: the best "
            "rival of each set, the largest losses first.",
            "\n".join(lines) or "Nothing.",
        ]
    )


def _worse(found: Sequence[Comparison]) -> str:
    """Returns the sets that are lost, and those that are worse within an error."""
    lost: dict[str, list[Comparison]] = {}
    for each in sorted(found, key=_loss, reverse=True):
        if each.outcome == LOST:
            lost.setdefault(each.on, []).append(each)
    texts = []
    for on, losses in [*lost.items()][:_MOST_NAMED]:
        best, more = losses[0], len(losses) - 1
        others = f" and {more} more" if more else ""
        texts.append(f"{on} {best.ours:.4g} / {best.theirs:.4g} {best.rival}{others}")
    if len(lost) > _MOST_NAMED:
        texts.append(f"and {len(lost) - _MOST_NAMED} others")
    even = [each.on for each in found if each.is_worse and each.outcome == EVEN]
    near = [name for name in dict.fromkeys(even) if name not in lost]
    if near:
        texts.append(f"worse within one standard error on {', '.join(near)}")
    return "; ".join(texts)


def _loss(each: Comparison) -> float:
    """Returns the share of the other figure by which ours is worse."""
    if not math.isfinite(each.margin):
        return math.inf
    return -each.margin / max(abs(each.theirs), 1e-12)
