"""Training on a table that is larger than the memory it may take.

    python benchmarks/streaming.py

A CSV file of 10^7 rows and 20 columns is written, read block by block, and trained on
for one epoch, in a process whose peak of resident memory is measured.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from timing import machine, print_table, write_json

COLUMNS = 20
_ROWS_AT_ONCE = 200_000
_WORDS = ("amber", "blue", "crimson", "dun")


def main() -> None:
    """Measures, prints the table and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--directory", type=Path, help="where to put the files")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.directory)))
        return
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        began = time.perf_counter()
        size = write_csv(Path(directory) / "table.csv", options.rows)
        generated = time.perf_counter() - began
        measured = in_a_process(Path(directory))
    results = {
        "machine": machine(),
        "rows": options.rows,
        "columns": COLUMNS,
        "csv_megabytes": size / 1e6,
        "seconds": {"generate": generated, **measured.pop("seconds")},
        **measured,
    }
    rows = [[phase, f"{value:.1f}"] for phase, value in results["seconds"].items()]
    print_table(f"{options.rows} rows × {COLUMNS} columns", ["phase", "s"], rows)
    print(f"\npeak: {results['peak_mebibytes']:.0f} MiB")
    write_json(__file__, results)


def in_a_process(directory: Path) -> dict[str, Any]:
    """Returns what `measure` does of a directory, in a new process."""
    program = [sys.executable, __file__, "--child", "--directory", str(directory)]
    run = subprocess.run(program, stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def measure(directory: Path) -> dict[str, Any]:
    """Trains on `table.csv` in a directory for one epoch.

    Returns:
        The time of each phase and the peak of resident memory, libraries included.
    """
    from tfbbb.data.scan import TableScan
    from tfbbb.training import JobSpec, train_table

    libraries = _peak()
    reports = []
    spec = JobSpec.model_validate(
        {"target": "y", "training": {"epochs": 1, "batch_size": 256}}
    )
    began = time.time()
    trained = train_table(
        TableScan(directory / "table.csv", format="csv"),
        spec,
        directory=directory / "scratch",
        report=lambda progress: reports.append((time.time(), progress)),
    )
    end = time.time()
    (stored,) = (directory / "scratch").glob("table-*.arrow")
    scanned = stored.stat().st_mtime
    last = reports[-1]
    started = last[0] - last[1].seconds
    return {
        "seconds": {
            "scan and store": scanned - began,
            "split and prepare": started - scanned,
            "train": last[1].seconds,
            "measure": end - last[0],
        },
        "rows_per_second_of_training": trained.num_training_rows / last[1].seconds,
        "libraries_mebibytes": libraries,
        "peak_mebibytes": _peak(),
        "metrics": dict(trained.metrics),
    }


def write_csv(path: Path, rows: int) -> int:
    """Writes a table of numbers, texts and a target, and returns its bytes."""
    blocks = _blocks(rows)
    first = next(blocks)
    with pa.csv.CSVWriter(path, first.schema) as writer:
        writer.write_batch(first)
        for block in blocks:
            writer.write_batch(block)
    return path.stat().st_size


def _blocks(rows: int) -> Iterator[pa.RecordBatch]:
    generator = np.random.default_rng(0)
    slopes = generator.normal(size=COLUMNS - 2)
    for start in range(0, rows, _ROWS_AT_ONCE):
        number = min(_ROWS_AT_ONCE, rows - start)
        x = np.round(generator.normal(size=[COLUMNS - 2, number]), 5)
        words = generator.integers(len(_WORDS), size=number)
        y = slopes @ x + words + generator.normal(size=number)
        columns = {f"x{index}": values for index, values in enumerate(x)}
        columns["word"] = np.array(_WORDS)[words]
        columns["y"] = np.round(y, 5)
        yield pa.RecordBatch.from_pydict(columns)


def _peak() -> float:
    """Returns the highest resident set size so far, in mebibytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 2**10


if __name__ == "__main__":
    main()
