"""Runs MAPIE and scikit-activeml, unchanged, around `tfbbb.sklearn`.

    python benchmarks/sklearn_peers.py [--steps 500] [--rounds 4]

They run in an environment of their own, with the requirements of this checkout: their
conformal intervals beside ours on the diabetes table, and learning curves of queries by
entropy and at random on the wine table.
"""

import argparse
import tomllib
from pathlib import Path

from environments import Peer
from timing import machine, print_table, write_json

ROOT = Path(__file__).resolve().parent.parent


def requirements() -> tuple[str, ...]:
    """Returns what the estimators and the two libraries need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return (*project["dependencies"], "mapie>=1.6,<2", "scikit-activeml>=1.0.1,<2")


def main() -> None:
    """Measures, prints and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=500, help="steps of a training")
    parser.add_argument("--rounds", type=int, default=4, help="rounds of queries")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = Peer("use_sklearn_tools", requirements()).run(
        root=str(ROOT), **vars(options)
    )
    intervals = {
        str(name): {"coverage": float(coverage), "width": float(width)}
        for name, coverage, width in zip(
            found["names"], found["coverage"], found["width"], strict=True
        )
    }
    print_table(
        "90 % intervals of diabetes",
        ["", "coverage", "mean width"],
        [
            [name, f"{figures['coverage']:.3f}", f"{figures['width']:.0f}"]
            for name, figures in intervals.items()
        ],
    )
    curves = {
        name: [float(value) for value in found[name]]
        for name in ("by_entropy", "by_chance")
    }
    print_table(
        "Accuracy on wine",
        ["labels", *map(str, found["labels"])],
        [
            [name.replace("_", " "), *(f"{value:.3f}" for value in values)]
            for name, values in curves.items()
        ],
    )
    results = {
        "machine": machine(),
        "versions": str(found["versions"]),
        "settings": vars(options),
        "intervals": intervals,
        "labels": [int(number) for number in found["labels"]],
        **curves,
    }
    write_json(__file__, results)


if __name__ == "__main__":
    main()
