"""Scores of default jobs on regression tables, beside published results.

    python benchmarks/job_defaults.py --data DIRECTORY

The directory holds `uci/SET.npz` with `data` [rows, columns], the columns
`index_features` and `index_target`, and the rows `train_idx` and `test_idx` of each of
the standard splits (Hernandez-Lobato and Adams 2015). A job gets the training rows of a
split and the name of the target, and holds out validation rows from these. The scores
are means over the test rows of all splits, with their standard errors.
"""

import argparse
import os
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from timing import machine, print_table, write_json

from tfbbb.training import JobSpec, train_table
from tfbbb.training.held_out import held_out_figures

# Test log-likelihood of probabilistic backpropagation (Hernandez-Lobato and Adams
# 2015, table 2), one hidden layer of 50 units.
PBP = {
    "bostonHousing": -2.57,
    "concrete": -3.16,
    "energy": -2.04,
    "wine-quality-red": -0.97,
    "yacht": -1.63,
}
FIGURES = ("log_likelihood", "rmse", "coverage_90")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main() -> None:
    """Trains on every split, prints the table and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("TFBBB_DATA", DATA)),
        help="directory of the tables (default: $TFBBB_DATA, else ../shared/data)",
    )
    parser.add_argument("--splits", type=int, default=5, help="splits of each table")
    options = parser.parse_args()
    results: dict[str, Any] = {
        "machine": machine(),
        "splits": options.splits,
        "sets": {},
    }
    rows = []
    for name, published in PBP.items():
        archive = np.load(options.data / "uci" / f"{name}.npz")
        scores = [measure_split(archive, split) for split in range(options.splits)]
        found = results["sets"][name] = summary(scores, published)
        rows.append(cells(name, found))
        print(" | ".join(rows[-1]), flush=True)
    columns = ["set", "log-likelihood", "PBP", "margin", "RMSE", "90 % intervals cover"]
    print_table("jobs of a target alone", columns, rows)
    write_json(__file__, results)


def measure_split(archive: Any, split: int) -> dict[str, float]:
    """Trains on the training rows of a split, and scores the test rows."""
    data, target = archive["data"], int(archive["index_target"])
    table = pa.table(
        {
            "y" if column == target else f"x{column}": data[:, column]
            for column in [*archive["index_features"].tolist(), target]
        }
    )
    trained = train_table(table.take(archive["train_idx"][split]), JobSpec(target="y"))
    test = table.take(archive["test_idx"][split])
    schema = trained.schema
    inputs, targets = schema.inputs(test), schema.targets(test)
    return held_out_figures(trained.model, inputs, targets)


def summary(scores: list[dict[str, float]], published: float) -> dict[str, Any]:
    """Returns means and standard errors, and the margin above the goal.

    The goal is the published log-likelihood minus one standard error of the mean.
    """
    found: dict[str, Any] = {}
    for name in FIGURES:
        values = [figures[name] for figures in scores]
        error = statistics.stdev(values) / len(values) ** 0.5
        found[name] = {"mean": statistics.fmean(values), "standard_error": error}
        found[name]["splits"] = values
    log_likelihood = found["log_likelihood"]
    floor = published - log_likelihood["standard_error"]
    return {**found, "pbp": published, "margin": log_likelihood["mean"] - floor}


def cells(name: str, found: dict[str, Any]) -> list[str]:
    """Returns one row of the table."""

    def with_error(figure: str, factor: float = 1.0) -> str:
        mean, error = (found[figure][key] for key in ("mean", "standard_error"))
        return f"{factor * mean:.3g} ± {factor * error:.2g}"

    return [
        name,
        with_error("log_likelihood"),
        f"{found['pbp']:.2f}",
        f"{found['margin']:+.2f}",
        with_error("rmse"),
        f"{with_error('coverage_90', 100)} %",
    ]


if __name__ == "__main__":
    main()
