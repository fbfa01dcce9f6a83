"""The comparisons of the programs that measure speed, made from their JSON."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from comparisons import Comparison


def against(results: Mapping[str, Any]) -> Iterator[Comparison]:
    """Yields the milliseconds of this checkout beside those of another commit."""
    commit = results["commit"]
    for name, figures in results["figures"].items():
        pair = figures["this checkout"]["median"], figures[commit]["median"]
        yield Comparison("milliseconds", name, *pair, f"commit {commit}", False)


def commands(results: Mapping[str, Any]) -> Iterator[Comparison]:
    """Yields the milliseconds of commands with NumPy beside those with TensorFlow."""
    for command, engines in results["commands"].items():
        pair = engines["NumPy"]["median"], engines["TensorFlow"]["median"]
        yield Comparison("milliseconds", command, *pair, "TensorFlow", False)


def job_stages(results: Mapping[str, Any]) -> Iterator[Comparison]:
    """Yields the seconds of jobs in a warm trainer beside those in a cold one."""
    jobs = results["jobs"]
    for table, cold in jobs["cold"].items():
        pair = jobs["warm"][table]["total"], cold["total"]
        yield Comparison("seconds", table, *pair, "a trainer just started", False)


def laplace_peers(results: Mapping[str, Any]) -> Iterator[Comparison]:
    """Yields the seconds of fits beside those of laplace-torch."""
    for network, figures in results.items():
        for run in figures.get("runs", ()):
            on = ", ".join([network, run["structure"], run["subset"], run["curvature"]])
            for figure, ours in (("warm fit", "seconds"), ("cold fit", "cold")):
                theirs = run.get("theirs" if ours == "seconds" else "theirs_cold")
                if theirs is not None:
                    what = f"processor seconds of a {figure}"
                    yield Comparison(
                        what, on, run[ours], theirs, "laplace-torch", False
                    )


def predict(results: Mapping[str, Any]) -> Iterator[Comparison]:
    """Yields the milliseconds of a prediction beside loops and Keras' layers."""
    for net, by_rows in results["nets"].items():
        for number, contenders in by_rows.items():
            on = f"{net}, {number} rows"
            for rival in contenders:
                if rival.startswith(("loop", "Keras")):
                    yield _milliseconds(
                        on, contenders, "predictive, auto", rival, results["rounds"]
                    )


def train_step(results: Mapping[str, Any]) -> Iterator[Comparison]:
    """Yields the milliseconds of a step beside Keras' layers and those of TFP."""
    for net, contenders in results["nets"].items():
        for ours in contenders:
            if ours.startswith("tfbbb") and "plain" not in ours:
                for rival in contenders:
                    if not rival.startswith("tfbbb"):
                        yield _milliseconds(
                            f"{net}, {ours.removeprefix('tfbbb ')}",
                            *(contenders, ours, rival, results["rounds"]),
                        )


# By the name of the program, whose JSON each takes.
COMPARE: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Comparison]]] = {
    "against": against,
    "commands": commands,
    "job_stages": job_stages,
    "laplace_peers": laplace_peers,
    "predict": predict,
    "train_step": train_step,
}


def _milliseconds(
    on: str, contenders: Mapping[str, Any], ours: str, rival: str, rounds: int
) -> Comparison:
    """Returns the comparison of two medians, whose errors their quartiles tell."""
    times = [contenders[name]["milliseconds"] for name in (ours, rival)]
    # Of normal times: an interquartile range is 1.35 deviations, and the error of a
    # median is 1.25 times that of a mean.
    ranges = [t["upper_quartile"] - t["lower_quartile"] for t in times]
    error = 1.25 / 1.35 * math.hypot(*ranges) / math.sqrt(rounds)
    medians = [t["median"] for t in times]
    return Comparison("milliseconds", on, *medians, rival, False, error)
