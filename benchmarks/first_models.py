"""Seconds of `tfbbb train` on small tables: on the clock, and of the processors.

    python benchmarks/first_models.py [--rounds 3]

On a machine that does other work, too, compare the seconds of the processors.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from timing import machine, print_table, write_json

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 10
TRAININGS: dict[str, tuple[int, tuple[str, ...]]] = {
    "1,000 rows": (1_000, ()),
    "1,000 rows, --quick": (1_000, ("--quick",)),
    "9,000 rows": (9_000, ()),
}


def main() -> None:
    """Measures, prints the table and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds of measurements")
    rounds = parser.parse_args().rounds
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in TRAININGS}
    described = machine()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(rounds):
            for training, (rows, options) in TRAININGS.items():
                table = write_table(folder / f"{rows}.csv", rows)
                output = folder / f"{rows}{len(options)}{number}"
                measured[training].append(train(table, output, options))
    found: dict[str, Any] = {
        training: {
            "seconds": statistics.median(seconds for seconds, _ in times),
            "processor_seconds": statistics.median(used for _, used in times),
        }
        for training, times in measured.items()
    }
    rows = [
        [name, *(f"{seconds:.1f}" for seconds in times.values())]
        for name, times in found.items()
    ]
    print_table("First models", ["", "seconds", "of processors"], rows)
    write_json(__file__, {"machine": described, "rounds": rounds, "trainings": found})


def write_table(path: Path, num_rows: int) -> Path:
    """Writes rows with a target that depends on four of the columns."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(num_rows, COLUMNS))
    noise = generator.normal(scale=0.3, size=num_rows)
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 2 * x[:, 3] + noise
    names = ",".join([*(f"c{n}" for n in range(COLUMNS)), "y"])
    table = np.column_stack([x, y])
    np.savetxt(path, table, fmt="%.5g", delimiter=",", header=names, comments="")
    return path


def train(table: Path, output: Path, options: tuple[str, ...]) -> tuple[float, float]:
    """Returns the seconds that the command took, and those of the processors."""
    command = ["train", table, "--target", "y", "--output", output, *options]
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "tfbbb", *map(str, command)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if code := os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"The training ends with the exit code {code}")
    return seconds, usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
