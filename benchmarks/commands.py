"""Seconds and memory of commands about an exported model, with and without TensorFlow.

    python benchmarks/commands.py

The same model is asked by the same commands: as it was exported, which NumPy computes,
and with a manifest that says that it needs TensorFlow.
"""

import argparse
import csv
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from timing import interleaved, machine, print_table, ratio, spread, write_json

from tfbbb.export.manifest import MANIFEST_PATH

ROOT = Path(__file__).resolve().parents[1]
TRAINED_ROWS, COLUMNS = 600, 8
# The command, and the rows that it is asked about.
COMMANDS = (("predict", 1_000), ("evaluate", 1_000), ("predict", 100_000))
ENGINES = ("NumPy", "TensorFlow")


def main() -> None:
    """Measures, prints the table and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds of measurements")
    rounds = parser.parse_args().rounds
    results: dict[str, Any] = {"machine": machine(), "rounds": rounds, "commands": {}}
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = exported(folder)
        for command, number in COMMANDS:
            what = f"{command}, {number:,} rows"
            table = write_table(folder / f"{number}.csv", number)
            most = dict.fromkeys(ENGINES, 0)
            contenders = {
                engine: functools.partial(measure, command, models, table, most, engine)
                for engine in ENGINES
            }
            measured = interleaved(contenders, rounds, what)
            results["commands"][what] = {
                engine: {**spread(measured[engine]), "most_mb": most[engine]}
                for engine in ENGINES
            }
            seconds = [f"{np.median(measured[x]) / 1e3:.2f}" for x in ENGINES]
            times = f"{ratio(measured, 'TensorFlow', 'NumPy'):.1f}"
            rows.append([what, *seconds, times, *(str(most[x]) for x in ENGINES)])
    heads = [*(f"{x}, s" for x in ENGINES), "x", *(f"{x}, MB" for x in ENGINES)]
    print_table("Commands", ["", *heads], rows)
    write_json(__file__, results)


def measure(
    command: str,
    models: Mapping[str, Path],
    table: Path,
    most: dict[str, int],
    engine: str,
) -> float:
    """Returns the milliseconds of a command; notes the most MB by engine."""
    milliseconds, megabytes = run(command, models[engine], table)
    most[engine] = max(most[engine], megabytes)
    return milliseconds


def exported(folder: Path) -> dict[str, Path]:
    """Trains by the default recipe; returns the model as each engine computes it."""
    numpy, tensorflow = folder / "numpy", folder / "tensorflow"
    table = write_table(folder / "trained.csv", TRAINED_ROWS)
    run("train", table, "--target", "y", "--output", numpy)
    shutil.copytree(numpy, tensorflow)
    path = tensorflow / "1" / MANIFEST_PATH
    manifest = json.loads(path.read_text())
    assert manifest["numpy"]["missing"] is None
    manifest["numpy"] = {"difference": None, "missing": "The benchmark wants it so."}
    path.write_text(json.dumps(manifest))
    return dict(zip(ENGINES, (numpy, tensorflow), strict=True))


def write_table(path: Path, num_rows: int) -> Path:
    """Writes rows with a target that depends on three of the columns."""
    generator = np.random.default_rng(num_rows)
    x = generator.normal(size=(num_rows, COLUMNS))
    noise = generator.normal(scale=0.3, size=num_rows)
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + noise
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{n}" for n in range(COLUMNS)), "y"])
        writer.writerows(np.column_stack([x, y]).tolist())
    return path


def run(*command: object) -> tuple[float, int]:
    """Returns the milliseconds of a command and the most MB that it held."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "tfbbb", *map(str, command)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    milliseconds = 1e3 * (time.perf_counter() - begin)
    if code := os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"{command[0]} ends with the exit code {code}")
    return milliseconds, usage.ru_maxrss // 1000


if __name__ == "__main__":
    main()
