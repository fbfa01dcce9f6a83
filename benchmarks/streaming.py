"""Uploads, trains on and serves a table that is larger than the memory used.

    python benchmarks/streaming.py

A CSV file of 10^7 rows and 20 columns is uploaded to `tfbbb serve`, which trains on it
for one epoch and answers. The resident memory of the service's processes is measured.
"""

import argparse
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv
from timing import machine, print_table, write_json

from tfbbb.cli.running_service import running_service
from tfbbb.client import Client

COLUMNS = 20
_ROWS_AT_ONCE = 200_000
_WORDS = ("amber", "blue", "crimson", "dun")
_SECONDS_BETWEEN_LOOKS = 0.2
# The kinds of processes of the service, by a word of their command line.
_ROLES = {
    "serve": "API",
    "service.model_process.worker": "models",
    "service.job_process.dispatcher": "dispatcher",
    "service.inspection_process.inspect": "inspection",
    "service.trainer": "trainer",
}


def main() -> None:
    """Measures, prints the tables and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--directory", type=Path, help="where to put the files")
    options = parser.parse_args()
    tempfile.tempdir = options.directory and str(options.directory)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table.csv"
        size = write_csv(path, options.rows)
        results = {
            "machine": machine(),
            "rows": options.rows,
            "columns": COLUMNS,
            "csv_megabytes": size / 1e6,
            **measure(path, Path(directory) / "models"),
        }
    print_table(
        f"{options.rows} rows × {COLUMNS} columns",
        ["phase", "s"],
        [[phase, f"{value:.1f}"] for phase, value in results["seconds"].items()],
    )
    print_table(
        "highest resident memory",
        ["process", "MiB"],
        [[role, f"{peak:.0f}"] for role, peak in results["peak_mebibytes"].items()],
    )
    write_json(__file__, results)


def measure(path: Path, models: Path) -> dict[str, Any]:
    """Uploads a table to a new service, trains one epoch and predicts a row.

    Returns:
        The time of each phase, the model's held-out figures and the peak of resident
        memory of each process.
    """
    models.mkdir()
    with (
        running_service(models) as (url, key),
        watched_memory() as peaks,
        Client(url, key) as client,
    ):
        began = time.perf_counter()
        dataset = client.upload(path)
        uploaded = time.perf_counter()
        training = {"epochs": 1, "batch_size": 256}
        job = client.train(dataset, "y", name="streamed", training=training)
        events = [(time.perf_counter(), event) for event in job.events()]
        job.refresh()
        if job.state != "succeeded":
            raise RuntimeError(f"The job {job.state}: {job.error}")
        row = {f"x{index}": 0.0 for index in range(COLUMNS - 2)} | {"word": "blue"}
        client.model("streamed").predict([row], version=job.version)
        answered = time.perf_counter()
        model = client.model("streamed").describe_version(job.version)
    trained = next(moment for moment, event in events if event.type == "epoch")
    return {
        "seconds": {
            "upload and inspect": uploaded - began,
            "store, split and train": trained - uploaded,
            "measure, publish and load": events[-1][0] - trained,
            "answer": answered - events[-1][0],
        },
        "peak_mebibytes": peaks,
        "metrics": model["description"]["metrics"],
    }


@contextmanager
def watched_memory() -> Iterator[dict[str, float]]:
    """Yields the highest resident memory of each kind of child process, in MiB.

    The kernel keeps the highest of each process; what is between the last look and
    the end of a process is missed.
    """
    peaks: dict[str, float] = defaultdict(float)
    done = threading.Event()

    def look() -> None:
        while not done.wait(_SECONDS_BETWEEN_LOOKS):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess, OSError):
                    line = process.cmdline()
                    role = next((_ROLES[word] for word in line if word in _ROLES), None)
                    if role is not None:
                        peaks[role] = max(peaks[role], _peak(process.pid))

    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield peaks
    finally:
        done.set()
        watch.join()


def _peak(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 2**10


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


if __name__ == "__main__":
    main()
