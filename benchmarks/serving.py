"""Predictions per second of the service, beside a plain FastAPI loop.

    python benchmarks/serving.py

The same SavedModel answers one row, S = 100, in JSON, behind both services on the same
cores. The load comes from another process: closed loops, and an open loop at three
times the capacity whose requests have deadlines.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from program import argument_parser, markdown_table, run
from records import RecordFile, SkippedError

from tfbbb.tensorflow_startup import import_tensorflow

_FOLDER = Path(__file__).resolve().parent
_PORT = 8393
_KEY = "bench.0123456789abcdef0123456789abcdef"
_CONNECTIONS = (1, 8, 64, 256)
_DEADLINE = 1.0
_OVERLOAD = 3.0
# Enough for every response that is late to have a connection.
_OPEN_CONNECTIONS = 1000
SERVICES = ("tfbbb", "plain FastAPI")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and reports."""
    options = argument_parser(__doc__).parse_args(arguments)
    seconds = 1.0 if options.smoke else 10.0
    connections = (1, 8) if options.smoke else _CONNECTIONS
    run(
        __file__,
        options,
        lambda measured: measure(measured, connections, seconds, options.smoke),
        report,
    )


def measure(
    measured: RecordFile, connections: Sequence[int], seconds: float, smoke: bool
) -> None:
    """Adds a record for each service and load."""
    settings = {"rows": 1, "num_samples": 100, "net": "13-50-1", "seconds": seconds}
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory, "models", "small", "1")
        export_network(model)
        for service in SERVICES:
            with _running(service, model) as server:
                _send(service, server, 8, 0.5 if smoke else 3.0)  # Warms.
                _measure_loads(measured, service, server, connections, settings)


def _measure_loads(
    measured: RecordFile,
    service: str,
    server: psutil.Process,
    connections: Sequence[int],
    settings: Mapping[str, Any],
) -> None:
    seconds = settings["seconds"]
    for count in connections:
        measured.measure(
            {"service": service, "load": f"{count} connections"},
            partial(_send, service, server, count, seconds),
            settings=settings,
        )
    measured.measure(
        {"service": service, "load": "overload"},
        partial(_overload, measured, service, server, seconds),
        settings=settings,
    )


def report(measured: RecordFile) -> str:
    """Returns the tables in Markdown."""
    closed, overload = [], []
    for record in measured.records:
        cpu = [f"{record['client_cpu']:.2f}", f"{record['server_cpu']:.2f}"]
        if record["load"] != "overload":
            closed.append(
                [
                    *(record["service"], record["load"].partition(" ")[0]),
                    f"{record['answered_per_second']:.0f}",
                    *(_text(record["p50_ms"]), _text(record["p99_ms"])),
                    *cpu,
                ]
            )
            continue
        counts = ("unsent", "asked", "in_time", "late", "refused", "lost")
        overload.append(
            [
                record["service"],
                *(f"{record[name]:.0f}" for name in counts),
                _text(record["refused_p99_ms"]),
                f"{record['memory_growth_mb']:.0f}",
                f"{record['recovery_seconds']:.1f}",
            ]
        )
    titles = ["connections", "answers/s", "p50, ms", "p99, ms"]
    first = markdown_table(
        ["service", *titles, "client, cores", "server, cores"], closed
    )
    titles = ["no connection free", "asked", "in time", "late", "refused", "lost"]
    titles.append("refused p99, ms")
    second = markdown_table(
        ["service", *titles, "memory grows, MB", "recovers in, s"], overload
    )
    return f"{first}\n\nOverload at {_OVERLOAD:g} × capacity:\n\n{second}"


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def export_network(path: Path) -> None:
    """Exports an untrained network: training does not change the speed."""
    import_tensorflow()
    import keras

    from tfbbb import BayesianModel
    from tfbbb.layers import DenseVariational

    inputs = keras.Input((13,))
    hidden = DenseVariational(50, activation="relu")(inputs)
    model = BayesianModel(inputs, DenseVariational(1)(hidden), likelihood="normal")
    path.parent.mkdir(parents=True)
    model.export_predictive(path, num_samples=100)


@contextmanager
def _running(service: str, model: Path) -> Iterator[psutil.Process]:
    """Runs a service until the block ends; yields its process."""
    if service == "tfbbb":
        application = ["--factory", "service.app:create_app"]
    else:
        application = ["--app-dir", str(_FOLDER), "plain_service:app"]
    command = [sys.executable, "-m", "uvicorn", *application, "--port", str(_PORT)]
    process = subprocess.Popen(
        [*command, "--log-level", "warning", "--no-access-log"],
        cwd=_FOLDER.parent,
        env=os.environ
        | {
            "SAVED_MODEL": str(model),
            "TFBBB_MODELS": str(model.parents[1]),
            "TFBBB_DATA_DIR": str(model.parents[2] / "data"),
            "TFBBB_ADMIN_KEY": _KEY,
            "TFBBB_START_DISPATCHER": "false",
        },
    )
    try:
        while not _is_ready():
            if process.poll() is not None:
                raise SkippedError(f"the service {service} does not start")
            time.sleep(0.2)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def _is_ready() -> bool:
    url = f"http://127.0.0.1:{_PORT}/health/ready"
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _send(
    service: str,
    server: psutil.Process,
    connections: int,
    seconds: float,
    rate: float = 0.0,
) -> dict[str, Any]:
    """Returns the figures of a load."""
    body: dict[str, Any] = {"instances": [[0.1 * i for i in range(13)]]}
    if rate and service == "tfbbb":
        body["parameters"] = {"deadline_ms": 1e3 * _DEADLINE}
    ours = service == "tfbbb"
    given = {
        "port": _PORT,
        "path": "/v1/models/small:predict" if ours else "/predict",
        "headers": [f"Authorization: Bearer {_KEY}"],
        "body": json.dumps(body),
        "connections": connections,
        "seconds": seconds,
        "rate": rate,
        "deadline": _DEADLINE,
    }
    before = _cpu(server)
    output = subprocess.run(
        [sys.executable, _FOLDER / "load_generator.py"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    figures: dict[str, Any] = json.loads(output)
    return figures | {
        "answered_per_second": figures["answered"] / seconds,
        "server_cpu": (_cpu(server) - before) / seconds,
        "connections": connections,
    }


def _overload(
    measured: RecordFile, service: str, server: psutil.Process, seconds: float
) -> dict[str, Any]:
    """Returns the figures of an open loop at three times the capacity."""
    records = measured.select(service=service)
    capacity = max(record["answered_per_second"] for record in records)
    memory = _memory(server)
    figures = _send(
        service, server, _OPEN_CONNECTIONS, 3 * seconds, _OVERLOAD * capacity
    )
    growth = (_memory(server) - memory) / 2**20
    begin = time.perf_counter()
    while True:
        alone = _send(service, server, 1, 0.2)
        if alone["answered"] and alone["p99_ms"] < 1e3 * _DEADLINE:
            break
    return figures | {
        "asked": 3 * seconds * _OVERLOAD * capacity - figures["unsent"],
        "late": figures["answered"] - figures["in_time"],
        "refused": figures["statuses"].get("503", 0),
        "memory_growth_mb": growth,
        "recovery_seconds": time.perf_counter() - begin,
    }


def _processes(server: psutil.Process) -> list[psutil.Process]:
    return [server, *server.children(recursive=True)]


def _cpu(server: psutil.Process) -> float:
    times = [process.cpu_times() for process in _processes(server)]
    return sum(t.user + t.system for t in times)


def _memory(server: psutil.Process) -> float:
    return float(sum(process.memory_info().rss for process in _processes(server)))


if __name__ == "__main__":
    main()
