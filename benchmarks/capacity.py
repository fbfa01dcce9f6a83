"""Memory, start and files of a service of tables.

    python benchmarks/capacity.py

The models are copies of one that the default recipe trained on 600 rows. The service
has two processes that answer, and none that trains. Its memory is that of all its
processes, where pages that several share count once.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
from commands import COLUMNS, exported, run, write_table
from program import argument_parser
from program import run as run_benchmark
from records import RecordFile

from tfbbb.cli.running_service import RunningService, running_service
from tfbbb.client import Client

_WORKERS, _FURTHER_MODELS = 2, 10
_STARTS, _FILES, _ROWS = 3, 2, 100_000
_FIRST_LOADS, _LOADS = 10, 60
_MEGABYTE = 1e6
_ROW = {f"x{column}": 0.5 for column in range(COLUMNS)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and reports."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--model", type=Path, metavar="DIR", help="the model (default: trains it)"
    )
    run_benchmark(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds a record for each figure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = options.model or exported(folder)["NumPy"]
        settings = {"workers": _WORKERS}
        for what, function in {
            "start": start,
            "further models": add_models,
            "loads and unloads": load_and_unload,
        }.items():
            figures = partial(function, model)
            measured.measure({"what": what}, figures, settings=settings)
        table = write_table(folder / "rows.csv", 1000 if options.smoke else _ROWS)
        measured.measure(
            {"what": "file"}, partial(predict_file, model, table), settings=settings
        )


def report(measured: RecordFile) -> str:
    """Returns a line for each figure."""
    found = {record["what"]: record for record in measured.records}
    texts = {
        "start": "The service is ready after {ready_seconds:.1f} s; idle with one "
        "model, it has {memory_mb:.0f} MB, of which its parent has {parent_mb:.0f}.",
        "further models": "Each further model takes {memory_mb:.1f} MB of each process "
        "and {disk_mb:.1f} MB of disk.",
        "loads and unloads": f"After {_LOADS} further loads and unloads it has "
        "{memory:.2f} times the memory, {threads:.2f} times the threads and "
        "{descriptors:.2f} times the descriptors.",
        "file": "`:predict-file` of {rows} rows takes {file_seconds:.1f} s, `tfbbb "
        "predict` {command_seconds:.1f} s.",
    }
    return "\n".join(
        f"- {text.format(**found[what])}"
        for what, text in texts.items()
        if what in found
    )


def start(model: Path) -> Mapping[str, Any]:
    """Returns the seconds until a service is ready, and its memory when it idles."""
    seconds = []
    for _ in range(_STARTS):
        begin = time.perf_counter()
        with _service([model]):
            seconds.append(time.perf_counter() - begin)
            memory, parent = _idle_memory(), _megabytes(_processes()[0])
    return {
        "ready_seconds": statistics.median(seconds),
        "memory_mb": memory,
        "parent_mb": parent,
    }


def add_models(model: Path) -> Mapping[str, Any]:
    """Returns the memory of each process, and the disk, for each further model."""
    memory = []
    for further in (0, _FURTHER_MODELS):
        with _service([model] * (1 + further)):
            memory.append(_idle_memory())
    files = [path.stat().st_size for path in model.rglob("*") if path.is_file()]
    return {
        "memory_mb": (memory[1] - memory[0]) / _FURTHER_MODELS / _WORKERS,
        "disk_mb": sum(files) / _MEGABYTE,
    }


def load_and_unload(model: Path) -> Mapping[str, Any]:
    """Returns the growth of a process that has room for one of two models."""
    with (
        _service([model] * 2, workers=1, model_memory_bytes=1) as service,
        Client(service.url, service.key) as client,
    ):
        models = [client.model(f"model{place}") for place in range(2)]

        def load(number: int) -> Mapping[str, float]:
            for place in range(number):
                models[place % 2].predict([_ROW])
            processes = _processes()
            return {
                "memory": _idle_memory(),
                "threads": sum(process.num_threads() for process in processes),
                "descriptors": sum(process.num_fds() for process in processes),
            }

        before, after = load(_FIRST_LOADS), load(_LOADS)
    return {name: after[name] / before[name] for name in before}


def predict_file(model: Path, table: Path) -> Mapping[str, Any]:
    """Returns the seconds of a file over HTTP, and of the command."""
    content = table.read_bytes()
    by_http, by_command = [], []
    with _service([model]) as service:
        for _ in range(_FILES):
            begin = time.perf_counter()
            httpx.post(
                f"{service.url}/v1/models/model0:predict-file",
                content=content,
                headers={
                    "Authorization": f"Bearer {service.key}",
                    "Content-Type": "text/csv",
                },
                timeout=600,
            ).raise_for_status()
            by_http.append(time.perf_counter() - begin)
            by_command.append(run("predict", model, table)[0] / 1e3)
    return {
        "rows": content.count(b"\n") - 1,
        "file_seconds": min(by_http),
        "command_seconds": min(by_command),
    }


@contextmanager
def _service(models: Sequence[Path], **settings: int) -> Iterator[RunningService]:
    """Runs a service of some models, `model0` and so on."""
    given = {"job_slots": 0, "workers": _WORKERS} | settings
    os.environ |= {f"TFBBB_{name.upper()}": str(given[name]) for name in given}
    try:
        with tempfile.TemporaryDirectory() as name:
            for place, model in enumerate(models):
                shutil.copytree(model, Path(name, f"model{place}"))
            with running_service(Path(name)) as service:
                yield service
    finally:
        for setting in given:
            del os.environ[f"TFBBB_{setting.upper()}"]


def _processes() -> list[psutil.Process]:
    """Returns the processes of the service, the parent first."""
    return psutil.Process().children(recursive=True)


def _megabytes(process: psutil.Process) -> float:
    return float(process.memory_full_info().pss / _MEGABYTE)


def _idle_memory() -> float:
    """Waits until all processes have loaded their models; returns their MB."""
    before = 0.0
    while True:
        memory = sum(map(_megabytes, _processes()))
        if abs(memory - before) < 1.0:
            return memory
        before = memory
        time.sleep(1.0)


if __name__ == "__main__":
    main()
