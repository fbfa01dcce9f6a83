"""Predictions per second of the service, beside those of other servers.

    python benchmarks/serving.py

The same network answers one row, S = 100, in JSON, behind each server on the same
cores: the service, a plain FastAPI loop around the SavedModel, one around the ONNX
file, and BentoML, LitServe, MLServer and Ray Serve with their batching on. All but the
first two have environments of their own. The load comes from another process: closed
loops, and an open loop at three times the capacity, whose clients hang up after a
second. The service also answers one connection while it trains a model, and while
others send 30 MB, and it answers large requests.
"""

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from busy_service import large_requests, training
from environments import PROGRAMS, Peer, environment_variables
from heavy_requests import WIDTH, send_binary, send_heavy
from load_generator import send_load
from program import argument_parser, run
from records import RecordFile, SkippedError
from timing import markdown_table

from tfbbb.base.tensorflow_startup import import_tensorflow

_FOLDER = Path(__file__).resolve().parent
_PORT = 8393
_KEY = "bench.0123456789abcdef0123456789abcdef"
_CONNECTIONS = (1, 8, 64, 256)
_DEADLINE = 1.0
_OVERLOAD = 3.0
# At three times the capacity, responses that take their whole second need as many.
_OPEN_CONNECTIONS = 4000
_MOST_FILES = 16_384
_MOST_SECONDS_TO_START = 600.0
_MOST_SECONDS_TO_RECOVER = 10.0
_ONNX_FILE = "small.onnx"
_ROW = [0.1 * place for place in range(13)]
# Of the means and variances of two servers; those of ONNX are of other draws.
_TOLERANCE = 0.01


@dataclass(frozen=True)
class Server:
    """A server of the network.

    Attributes:
        command: Returns the command that starts it, given the path of Python.
        path: The path of predictions.
        outputs: Returns the outputs of the first row of a response.
        body: The body of a request.
        peer: Its environment; None for that of this program.
    """

    command: Callable[[Path], list[Any]]
    path: str
    outputs: Callable[[Any], Mapping[str, Sequence[float]]]
    body: Mapping[str, Any]
    peer: Peer | None = None

    def python(self) -> Path:
        """Returns the Python that runs it."""
        return Path(sys.executable) if self.peer is None else self.peer.environment()


def _tfbbb(python: Path) -> list[Any]:
    return [python, "-m", "tfbbb", "serve", "--port", _PORT]


def _plain(python: Path) -> list[Any]:
    options = ("--log-level", "warning", "--no-access-log", "--port", _PORT)
    application = ("--app-dir", _FOLDER, "plain_service:app")
    return [python, "-m", "uvicorn", *application, *options]


def _program(name: str) -> Callable[[Path], list[Any]]:
    return lambda python: [python, PROGRAMS / f"{name}.py", _PORT]


def _peer(program: str, *requirements: str, needs_tensorflow: bool = True) -> Peer:
    return Peer(program, requirements, needs_tensorflow)


def _first(answer: Any) -> Mapping[str, Sequence[float]]:
    return answer["predictions"][0]


_ROWS = {"instances": [_ROW]}
_TENSOR = {"name": "inputs", "shape": [1, 13], "datatype": "FP32", "data": _ROW}
SERVERS = {
    "tfbbb": Server(_tfbbb, "/v1/models/small:predict", _first, _ROWS),
    "plain FastAPI": Server(_plain, "/predict", _first, _ROWS),
    "ONNX Runtime": Server(
        _program("serve_onnxruntime"),
        "/predict",
        _first,
        _ROWS,
        _peer(
            "serve_onnxruntime",
            *("fastapi", "uvicorn[standard]", "orjson", "onnxruntime"),
            needs_tensorflow=False,
        ),
    ),
    "BentoML": Server(
        _program("serve_bentoml"),
        "/predict",
        lambda answer: answer[0],
        _ROWS,
        _peer("serve_bentoml", "bentoml"),
    ),
    "LitServe": Server(
        _program("serve_litserve"),
        "/predict",
        _first,
        _ROWS,
        _peer("serve_litserve", "litserve"),
    ),
    "MLServer": Server(
        _program("serve_mlserver"),
        "/v2/models/small/infer",
        lambda answer: {each["name"]: each["data"] for each in answer["outputs"]},
        {"inputs": [_TENSOR]},
        _peer("serve_mlserver", "mlserver"),
    ),
    "Ray Serve": Server(
        _program("serve_ray"), "/", _first, _ROWS, _peer("serve_ray", "ray[serve]")
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and reports."""
    parser = argument_parser(__doc__)
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=list(SERVERS))
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    # Each connection is a file, of the servers too.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MOST_FILES if most == resource.RLIM_INFINITY else min(_MOST_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds a record for each server and load."""
    seconds = 1.0 if options.smoke else options.seconds
    connections = (1, 8) if options.smoke else _CONNECTIONS
    settings = {"rows": 1, "num_samples": 100, "net": "13-50-1", "seconds": seconds}
    found: dict[str, tuple[float, ...]] = {}
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory, "models", "small", "1")
        export_network(model, len(_ROW), Path(directory, _ONNX_FILE))
        # The service loads it too.
        export_network(model.parents[1] / "wide" / "1", WIDTH)
        for name in options.servers:
            try:
                with _running(name, model, found) as server:
                    _send(name, server, 8, min(3.0, seconds / 2))  # Warms.
                    _measure_loads(measured, name, server, connections, settings)
                    if name == "tfbbb":
                        _measure_busy(measured, name, server, settings)
                        _measure_heavy(measured, name, settings)
            except SkippedError as reason:
                measured.skip({"service": name}, str(reason))


def _measure_loads(
    measured: RecordFile,
    name: str,
    server: psutil.Process,
    connections: Sequence[int],
    settings: Mapping[str, Any],
) -> None:
    seconds = settings["seconds"]
    for count in connections:
        measured.measure(
            {"service": name, "load": f"{count} connections"},
            partial(_send, name, server, count, seconds),
            settings=settings,
        )
    measured.measure(
        {"service": name, "load": "overload"},
        partial(_overload, measured, name, server, seconds),
        settings=settings,
    )


def _measure_busy(
    measured: RecordFile, name: str, server: psutil.Process, settings: Mapping[str, Any]
) -> None:
    """Adds the figures of one connection beside other work."""
    busy = {
        "training": training(_PORT, _KEY),
        "30 MB": large_requests(_PORT, _KEY, SERVERS[name].path),
    }
    for work, beside in busy.items():
        with beside:
            measured.measure(
                {"service": name, "load": f"1 connection beside {work}"},
                partial(_send, name, server, 1, settings["seconds"]),
                settings=settings,
            )


def _measure_heavy(
    measured: RecordFile, name: str, settings: Mapping[str, Any]
) -> None:
    """Adds the figures of large requests."""
    measured.measure(
        {"service": name, "load": "1 000 rows × 784 in binary"},
        partial(send_binary, _PORT, _KEY, "wide"),
        settings=settings,
    )
    for clients in (2, 24):
        measured.measure(
            {"service": name, "load": f"{clients} × 500 rows × 784 × 400 draws"},
            partial(send_heavy, _PORT, _KEY, "wide", clients, 3 * settings["seconds"]),
            settings=settings,
        )


def report(measured: RecordFile) -> str:
    """Returns the figures of each service under each load, and beside other work."""
    loads = dict.fromkeys(record["load"] for record in measured.records)
    closed = [load for load in loads if load.endswith(" connections")]
    rows, busy = [], []
    for name in dict.fromkeys(record["service"] for record in measured.records):
        by_load = {r["load"]: r for r in measured.select(service=name)}
        cells = [_answers(by_load.get(load)) for load in closed]
        overload = by_load.get("overload")
        if overload is not None:
            capacity = max(by_load[x]["answered_per_second"] for x in closed)
            cells += [
                f"{100 * overload['in_time_share']:.1f}",
                f"{100 * overload['answered_per_second'] / capacity:.0f}",
                _text(overload["refused_p99_ms"]),
                f"{overload['memory_growth_mb']:.0f}",
                f"{overload['recovery_seconds']:.1f}",
            ]
        rows.append([name, *cells])
        others = [load for load in by_load if load not in (*closed, "overload")]
        busy += [f"- {name}, {load}: {_answers(by_load[load])}" for load in others]
    columns = [
        "answers/s (p50, p99 in ms)",
        *closed,
        f"at {_OVERLOAD:g} × capacity: in time of accepted, %",
        *("answers of the capacity, %", "refused in, ms (p99)"),
        *("memory grows, MB", "recovers in, s"),
    ]
    return "\n\n".join([markdown_table(columns, rows), "\n".join(busy)])


def _answers(record: Mapping[str, Any] | None) -> str:
    """Returns the answers per second, the times and the refusals of a load, as text."""
    if record is None:
        return ""
    times = f"{_text(record['p50_ms'])}, {_text(record['p99_ms'])}"
    refused = record.get("statuses", {}).get("503")
    told = f"; {refused} × 503" if refused else ""
    return f"{record['answered_per_second']:.0f} ({times}{told})"


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def export_network(path: Path, num_features: int, onnx: Path | None = None) -> None:
    """Exports an untrained network: training does not change the speed."""
    import_tensorflow()
    import keras

    from tfbbb import BayesianModel
    from tfbbb.layers import DenseVariational

    keras.utils.set_random_seed(0)
    inputs = keras.Input((num_features,))
    hidden = DenseVariational(50, activation="relu")(inputs)
    model = BayesianModel(inputs, DenseVariational(1)(hidden), likelihood="normal")
    path.parent.mkdir(parents=True)
    model.export_predictive(path, num_samples=100)
    if onnx is not None:
        model.export_predictive(onnx, format="onnx", num_samples=100)


@contextmanager
def _running(
    name: str, model: Path, found: dict[str, tuple[float, ...]]
) -> Iterator[psutil.Process]:
    """Runs a server until the block ends; yields its process."""
    server = SERVERS[name]
    command = [str(part) for part in server.command(server.python())]
    variables = {
        "SAVED_MODEL": str(model),
        "ONNX_FILE": str(model.parents[2] / _ONNX_FILE),
        "TFBBB_MODELS": str(model.parents[1]),
        "TFBBB_DATA_DIR": str(model.parents[2] / "data"),
        "TFBBB_ADMIN_KEY": _KEY,
        "TFBBB_ACCESS_LOG": "off",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    # Fails if another server has the port, whose answers would be measured.
    socket.create_server(("127.0.0.1", _PORT)).close()
    with tempfile.TemporaryFile() as log:
        process = psutil.Popen(
            command,
            cwd=_FOLDER.parent if server.peer is None else model.parents[2],
            env={**environment_variables(), **variables},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            found[name] = _wait_for_answer(name, process)
            pairs = zip(found[name], next(iter(found.values())), strict=True)
            if any(abs(one - other) > _TOLERANCE for one, other in pairs):
                raise SkippedError(f"{name} predicts otherwise: {found}")
            yield process
        except SkippedError:
            log.seek(0)
            print(log.read()[-2000:].decode(errors="replace"))
            raise
        finally:
            _stop(process)


def _wait_for_answer(name: str, process: psutil.Popen) -> tuple[float, ...]:
    """Waits until a server answers; returns the mean and the variance of the row."""
    server = SERVERS[name]
    request = urllib.request.Request(
        f"http://127.0.0.1:{_PORT}{server.path}",
        json.dumps(server.body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {_KEY}"},
    )
    give_up = time.monotonic() + _MOST_SECONDS_TO_START
    while time.monotonic() < give_up and process.poll() is None:
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                outputs = server.outputs(json.load(response))
                return tuple(outputs[moment][0] for moment in ("mean", "variance"))
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise SkippedError(f"{name} does not start")


def _stop(process: psutil.Popen) -> None:
    """Ends a server and its child processes."""
    children = process.children(recursive=True)
    process.terminate()
    _, alive = psutil.wait_procs([process, *children], timeout=20)
    for other in alive:
        other.kill()
    psutil.wait_procs(alive, timeout=20)


def _send(
    name: str,
    server: psutil.Process,
    connections: int,
    seconds: float,
    rate: float = 0.0,
) -> dict[str, Any]:
    """Returns the figures of a load."""
    body = dict(SERVERS[name].body)
    if rate and name == "tfbbb":
        body["parameters"] = {"deadline_ms": 1e3 * _DEADLINE}
    before = _cpu(server)
    figures = send_load(
        _PORT,
        SERVERS[name].path,
        body,
        _KEY,
        connections=connections,
        seconds=seconds,
        deadline=_DEADLINE,
        rate=rate,
    )
    return figures | {
        "answered_per_second": figures["answered"] / seconds,
        "server_cpu": (_cpu(server) - before) / seconds,
        "connections": connections,
        "load_average": os.getloadavg()[0],
    }


def _overload(
    measured: RecordFile, name: str, server: psutil.Process, seconds: float
) -> dict[str, Any]:
    """Returns the figures of an open loop at three times the capacity."""
    records = measured.select(service=name)
    capacity = max(
        record["answered_per_second"]
        for record in records
        if record["load"] != "overload"
    )
    seconds = 3 * seconds
    memory = _memory(server)
    figures = _send(name, server, _OPEN_CONNECTIONS, seconds, _OVERLOAD * capacity)
    growth = (_memory(server) - memory) / 2**20
    begin = time.perf_counter()
    seconds = 0.0
    while seconds < _MOST_SECONDS_TO_RECOVER:
        alone = _send(name, server, 1, 0.2)
        seconds = time.perf_counter() - begin
        if alone["answered"] and alone["p99_ms"] < 1e3 * _DEADLINE:
            break
    refused = sum(n for status, n in figures["statuses"].items() if status != "200")
    asked = figures["answered"] + refused + figures["gave_up"] + figures["lost"]
    return figures | {
        "asked": asked,
        "late": figures["answered"] - figures["in_time"] + figures["gave_up"],
        "refused": refused,
        "in_time_share": figures["in_time"] / max(1, asked - refused),
        "memory_growth_mb": growth,
        "recovery_seconds": seconds,
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
