"""Tables of records: means with their errors, ranks, and where the defaults lose."""

import functools
import math
import statistics
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from program import FOLDER
from scipy.stats import rankdata

# By table, method and split.
Values = Mapping[str, Mapping[str, Mapping[int, float]]]
# Names of figures, of which a record has one, and whether larger ones are better.
Figure = tuple[Sequence[str], bool]
# The share of the tables that a method must have to be ranked.
_RANKED = 0.9


def mean_and_error(values: Iterable[float | None]) -> tuple[float, float]:
    """Returns the mean and its standard error; NaN where it is not known.

    The standard error is that of independent values, s / sqrt(n).
    """
    numbers = [math.nan if value is None else value for value in values]
    if not numbers:
        return math.nan, math.nan
    mean = statistics.fmean(numbers)
    if len(numbers) < 2 or not math.isfinite(mean):
        return mean, math.nan
    return mean, statistics.stdev(numbers) / math.sqrt(len(numbers))


def with_error(
    values: Iterable[float | None], digits: int = 2, factor: float = 1.0
) -> str:
    """Returns `mean±standard error` as text; empty without values."""
    numbers = list(values)
    mean, error = mean_and_error(numbers)
    if not numbers:
        return ""
    if not math.isfinite(mean):
        return "not finite"
    text = f"{factor * mean:.{digits}f}"
    return f"{text}±{factor * error:.{digits}f}" if math.isfinite(error) else text


def values(records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Values:
    """Returns a figure by table, method and split: of `names`, the first it has."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for record in sorted(records, key=lambda record: record["set"].lower()):
        figures = [record[name] for name in names if record.get(name) is not None]
        if figures:
            by_method = found.setdefault(record["set"], {})
            by_method.setdefault(record["method"], {})[record["split"]] = figures[0]
    return found


def ranks(found: Values, *, larger_is_better: bool) -> dict[str, list[float]]:
    """Returns the ranks of methods on the tables that all of them have.

    A method is ranked if it has nine tenths of the tables.
    """
    counts = Counter(method for by in found.values() for method in by)
    ranked = [m for m, count in counts.items() if count >= _RANKED * len(found)]
    places: list[np.ndarray] = []
    for by in found.values():
        folds = set.intersection(*(set(by.get(m, ())) for m in ranked))
        if folds:
            means = np.array(
                [np.mean([by[m][f] for f in sorted(folds)]) for m in ranked]
            )
            places.append(rankdata(-means if larger_is_better else means))
    by_method = zip(*(each.tolist() for each in places), strict=True)
    return {m: list(of) for m, of in zip(ranked, by_method, strict=False)}


def losses(
    records: Sequence[Mapping[str, Any]],
    rivals: Sequence[str],
    figures: Mapping[str, Figure],
) -> list[str]:
    """Returns a line for each figure: where a rival is better than `default`.

    A rival is better if the mean difference over the common splits is beyond its
    standard error. With one split the error is not known, and any difference counts.
    """
    lines = []
    for title, (names, larger) in figures.items():
        by_table = values(records, names)
        compared = {n: of for n, of in by_table.items() if "default" in of}
        lost = {}
        for name, by_method in compared.items():
            gains = {
                method: _gain(theirs, by_method["default"], larger)
                for method, theirs in by_method.items()
                if method in rivals
            }
            best = max(gains, key=gains.__getitem__, default=None)
            if best is not None and gains[best] > 0.0:
                lost[name] = best
        where = ", ".join(f"{name} ({method})" for name, method in lost.items())
        if compared:
            lines.append(
                f"- {title}: another library is better on {len(lost)} of "
                f"{len(compared)} tables{': ' * bool(lost)}{where}"
            )
    return lines


def _gain(
    theirs: Mapping[int, float], ours: Mapping[int, float], larger: bool
) -> float:
    """Returns by how much a rival is better; 0 within a standard error."""
    sign = 1.0 if larger else -1.0
    splits = sorted(theirs.keys() & ours.keys())
    gain, error = mean_and_error(sign * (theirs[s] - ours[s]) for s in splits)
    return gain if gain > (0.0 if math.isnan(error) else error) else 0.0


def splits_line(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns a sentence with the number of splits of each method."""
    counts: dict[str, dict[str, int]] = {}
    for record in records:
        sets = counts.setdefault(record["method"], {})
        sets[record["set"]] = sets.get(record["set"], 0) + 1
    listed = [
        f"{method} {'–'.join(map(str, sorted({min(n.values()), max(n.values())})))}"
        for method, n in counts.items()
    ]
    return f"Splits of each set: {', '.join(listed)}."


@functools.cache
def published() -> dict[str, Any]:
    """Returns the published figures of the methods on the standard splits."""
    return tomllib.loads((FOLDER / "published.toml").read_text("utf-8"))


def published_score(method: str, score: str, name: str) -> float | None:
    """Returns a published score of a set, None where the paper has none."""
    for known, value in published()[method].get(score, {}).items():
        if name.lower().startswith(known.lower()):
            return value
    return None
