"""The tables and comparisons of `uci`, made from its records."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from comparisons import Comparison, compare_methods, values
from program import (
    common_means,
    decimals,
    mean_and_error,
    published,
    published_score,
    skipped_lines,
    splits_line,
    values_by_split,
    with_error,
)
from records import RecordFile
from table_peers import PEERS
from timing import markdown_table


def report(measured: RecordFile) -> str:
    """Returns the tables, and where the defaults stand."""
    means = Means(measured.records)
    parts = [
        _scores_table(means, "log_likelihood", "Log-likelihood, nats per row"),
        _scores_table(means, "rmse", "Root mean squared error"),
    ]
    if means.sets_with("log_probability"):
        title = "Log-probability of the whole number"
        parts.append(_scores_table(means, "log_probability", title))
        parts.append(
            "Where all targets are whole numbers, narrow noise at these makes the "
            "density as large as one likes: read the probability of the number "
            "instead, which the papers do not report."
        )
    for score, title in (
        ("crps", "Continuous ranked probability score"),
        ("interval_score_90", "Interval score of intervals of 90 %"),
        ("coverage_50", "Coverage of 50 % intervals, %"),
        ("coverage_90", "Coverage of 90 % intervals, %"),
        ("coverage_95", "Coverage of 95 % intervals, %"),
        ("seconds", "Seconds to fit and predict"),
    ):
        parts.append(_scores_table(means, score, title))
    parts.append(
        f"{splits_line(measured.records)} The published figures are means over 20 "
        "splits, of protein over 5."
    )
    parts += [*skipped_lines(measured), _standing(means)]
    return "\n\n".join(part for part in parts if part)


class Means:
    """Scores by set and method.

    Args:
        records: The records of a file.
    """

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._records = records
        methods = dict.fromkeys(record["method"] for record in records)
        self.methods = sorted(methods, key=lambda method: method != "default")
        self.sets = sorted({record["set"] for record in records}, key=str.lower)
        self.published = published("uci")["methods"]

    def values(self, name: str, method: str, score: str) -> dict[int, float | None]:
        """Returns the scores by split."""
        return values_by_split(self._records, score, set=name, method=method)

    def sets_with(self, score: str) -> list[str]:
        """Returns the sets that have a score."""
        return sorted({r["set"] for r in self._records if score in r}, key=str.lower)

    def beside(self, name: str, method: str, other: str, score: str) -> Any:
        """Returns the means of two methods over the splits that both have; or None."""
        return common_means(*(self.values(name, m, score) for m in (method, other)))

    def rivals(
        self, name: str, score: str, others: Sequence[str]
    ) -> dict[str, tuple[float, float]]:
        """Returns our mean and the figure of each rival that has one."""
        values = self.values(name, "default", score).values()
        if not values:
            return {}
        own, _ = mean_and_error(values)
        found = {}
        for other in others:
            if other in self.published:
                value = published_score(other, score, name)
                # Papers give two decimals.
                pair = None if value is None else (round(own, 2), value)
            else:
                pair = self.beside(name, "default", other, score)
            if pair is not None:
                found[other] = pair
        return found


# Papers whose log-likelihood the defaults are compared with, and HMC apart.
_PAPERS = (
    *("PBP", "tuned dropout", "VMG", "PBP-MV", "deep ensemble", "DVI"),
    "NGBoost, published",
)
_FIGURES = {
    "log-likelihood": (["log_likelihood"], True),
    "log-probability of the number": (["log_probability"], True),
    "RMSE": (["rmse"], False),
    "CRPS": (["crps"], False),
    "interval score": (["interval_score_90"], False),
    "seconds": (["seconds"], False),
}


def _best(
    found: Mapping[str, tuple[float, float]], *, larger: bool
) -> tuple[str, tuple[float, float]] | None:
    """Returns the rival with the best margin over us."""
    sign = 1.0 if larger else -1.0
    pairs = sorted(found.items(), key=lambda item: sign * (item[1][1] - item[1][0]))
    return pairs[-1] if pairs else None


def _scores_table(means: Means, score: str, title: str) -> str:
    sets = means.sets_with(score)
    if not sets:
        return ""
    percent = score.startswith("coverage")
    rows = []
    for method in means.methods:
        cells = []
        for name in sets:
            values = list(means.values(name, method, score).values())
            digits = 1 if percent or score == "seconds" else decimals(values)
            cells.append(with_error(values, digits, 100.0 if percent else 1.0))
        rows.append([method, *cells])
    for method, figures in means.published.items():
        cells = [published_score(method, score, name) for name in sets]
        if any(cell is not None for cell in cells):
            texts = ["" if cell is None else f"{cell:.2f}" for cell in cells]
            rows.append([f"{method} ({figures['source']})", *texts])
    return f"{title}:\n\n{markdown_table(['method', *sets], rows)}"


def _standing(means: Means) -> str:
    """Returns where the defaults stand against the best others."""
    if "default" not in means.methods:
        return ""
    peers = [method for method in means.methods if method in PEERS]
    rivals = [*peers, *_PAPERS]
    rows, ahead = [], {"best": [], "HMC": [], "error": []}
    ratios, coverages = [], []
    for name in means.sets:
        best = _best(means.rivals(name, "log_likelihood", rivals), larger=True)
        hmc = _best(means.rivals(name, "log_likelihood", ["HMC"]), larger=True)
        error = _best(means.rivals(name, "rmse", peers), larger=False)
        covered = means.values(name, "default", "coverage_90").values()
        if not covered:
            continue
        coverage = mean_and_error(covered)[0]
        coverages.append(coverage)
        cells = [name]
        for key, found in (("best", best), ("HMC", hmc)):
            if found is None:
                cells += ["", ""]
                continue
            rival, (ours, theirs) = found
            ahead[key].append(ours >= theirs)
            cells += [f"{ours:.2f}", f"{theirs:.2f} ({rival})"]
        if error is None:
            cells += ["", ""]
        else:
            rival, (ours, theirs) = error
            ahead["error"].append(ours <= theirs)
            ratios.append(ours / theirs)
            cells += [f"{theirs:.3g} ({rival})", f"{ours / theirs:.2f}"]
        rows.append([*cells, f"{100 * coverage:.1f} %"])
    columns = [
        "set",
        *("our log-likelihood", "best other", "beside HMC", "HMC"),
        *("best other RMSE", "ours over it", "90 % cover"),
    ]
    table = markdown_table(columns, rows)
    sentences = [
        _count(ahead["best"], "log-likelihood at least that of the best other"),
        _count(ahead["HMC"], "log-likelihood at least that of HMC"),
        _count(ahead["error"], "RMSE at most that of the best other"),
    ]
    if ratios:
        sentences.append(f"- largest RMSE over the best other one: {max(ratios):.2f}")
    if coverages:
        low, high = (100 * f(coverages) for f in (min, max))
        sentences.append(
            f"- 90 % intervals cover {100 * float(np.mean(coverages)):.1f} % on "
            f"average over the sets, from {low:.1f} to {high:.1f} %"
        )
    body = "\n".join(sentence for sentence in sentences if sentence)
    return (
        f"The defaults beside the best of {', '.join(rivals)}, over the splits that "
        "both were measured on, be it one. Beside published figures, ours are means "
        f"over all our splits, rounded as they are, to two decimals:\n\n{table}\n\n"
        f"{body}"
    )


def _count(ahead: Sequence[bool], what: str) -> str:
    return f"- {what}: {sum(ahead)} of {len(ahead)} sets" if ahead else ""


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns the defaults beside each library and each paper."""
    records = measured.records
    found = compare_methods(records, list(PEERS), _FIGURES)
    for figure in ("log-likelihood", "RMSE"):
        (score,), larger = _FIGURES[figure]
        for name, by_method in values(records, [score]).items():
            if "default" not in by_method:
                continue
            ours, error = mean_and_error(by_method["default"].values())
            for paper in (*_PAPERS, "HMC"):
                theirs = published_score(paper, score, name)
                if theirs is not None:
                    # Papers give two decimals.
                    pair = round(ours, 2), theirs
                    rival = paper.removesuffix(", published") + ", published"
                    found.append(Comparison(figure, name, *pair, rival, larger, error))
    return found
