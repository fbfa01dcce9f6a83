"""Memory, crashes, large bodies and trainings of the service.

    python benchmarks/robustness.py --part memory,requests,crashes,large_body,training

- memory: resident memory of a model process, by models that it has loaded.
- requests: growth of resident memory over many requests.
- crashes: time until a model answers again after its process is killed or stopped.
- large_body: the slowest small prediction while others send 30 MB of JSON.
- training: the 99th percentile at half of the capacity while a job trains, beside that
  without a job.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pyarrow as pa
from load_generator import send_load
from program import argument_parser, markdown_table, names_among, run
from records import RecordFile, SkippedError
from serving import export_network

from tfbbb.client import Client

_FOLDER = Path(__file__).resolve().parent
_PORT = 8394
_KEY = "bench.0123456789abcdef0123456789abcdef"
_BODY = {"instances": [[0.1 * i for i in range(13)]]}
_MODELS = 24
_LARGE_MB = 30


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and reports."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--part",
        type=names_among(PARTS),
        default=list(PARTS),
        metavar="A,B",
        help=f"parts (default: all of {', '.join(PARTS)})",
    )
    options = parser.parse_args(arguments)
    run(
        __file__,
        options,
        lambda measured: measure(measured, options.part, options.smoke),
        report,
    )


def measure(measured: RecordFile, parts: Sequence[str], smoke: bool) -> None:
    """Adds the records of some parts."""
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory, "exported", "1")
        export_network(model)
        for part in parts:
            PARTS[part](measured, model, smoke)


def report(measured: RecordFile) -> str:
    """Returns the figures in Markdown."""
    rows = [
        [record["part"], record["case"], record["figure"], f"{record['value']:.3g}"]
        for record in measured.records
    ]
    return markdown_table(["part", "case", "figure", "value"], rows)


def _measure_memory(measured: RecordFile, model: Path, smoke: bool) -> None:
    count = 2 if smoke else _MODELS

    def grow() -> Mapping[str, Any]:
        with _running(model, models=1, processes=1) as service:
            (process,) = service.model_processes()
            alone = process.memory_info().rss
            service.add_models(count)
            grown = process.memory_info().rss - alone
        return _value("MB of each further model", grown / 2**20 / (count - 1))

    _record(measured, "memory", f"{count} models", grow)


def _measure_requests(measured: RecordFile, model: Path, smoke: bool) -> None:
    count = 200 if smoke else 1_000_000

    def send() -> Mapping[str, Any]:
        with _running(model, models=1, processes=1) as service:
            service.send(count // 10)
            before = [p.memory_info().rss for p in service.processes()]
            service.send(count)
            after = [p.memory_info().rss for p in service.processes()]
        return _value(
            "growth of resident memory, %", 100 * sum(after) / sum(before) - 100
        )

    _record(measured, "requests", f"{count} requests", send)


def _measure_crashes(measured: RecordFile, model: Path, smoke: bool) -> None:
    for processes in (2,) if smoke else (1, 2):
        for fate in ("SIGKILL",) if smoke else ("SIGKILL", "SIGSTOP"):

            def crash(
                processes: int = processes, fate: str = fate
            ) -> Mapping[str, Any]:
                with _running(model, models=2, processes=processes) as service:
                    home = service.model_processes()[0]
                    begin = time.perf_counter()
                    home.send_signal(signal.Signals[fate])
                    home.wait()
                    service.wait_until_answered()
                    seconds = time.perf_counter() - begin
                return _value("seconds until both models answer", seconds)

            _record(measured, "crashes", f"{fate}, {processes} processes", crash)


def _measure_large_body(measured: RecordFile, model: Path, smoke: bool) -> None:
    seconds = 2.0 if smoke else 20.0

    def disturb() -> Mapping[str, Any]:
        with _running(model, models=1, processes=1) as service:
            alone = service.slowest(seconds / 4)
            row = json.dumps(_BODY["instances"][0]).encode()
            count = (1 if smoke else _LARGE_MB) * 2**20 // (len(row) + 2)
            head = b'{"parameters": {"num_samples": 2}, "instances": ['
            large = head + b", ".join([row] * count) + b"]}"
            done = threading.Event()

            statuses: Counter[int] = Counter()

            def send_large() -> None:
                while not done.is_set():
                    found = service.client.post(_path(0), content=large, headers=_JSON)
                    statuses[found.status_code] += 1

            sending = threading.Thread(target=send_large)
            sending.start()
            slowest = service.slowest(seconds)
            done.set()
            sending.join()
        if not statuses[200]:
            raise SkippedError(f"no large body is answered, but {dict(statuses)}")
        return _value("slowest small prediction, ms", 1e3 * slowest) | {
            "alone_ms": 1e3 * alone,
            "large_statuses": dict(statuses),
        }

    _record(measured, "large_body", f"beside {_LARGE_MB} MB of JSON", disturb)


def _measure_training(measured: RecordFile, model: Path, smoke: bool) -> None:
    seconds = 1.0 if smoke else 20.0
    random = np.random.default_rng(0)
    x = random.normal(size=(200 if smoke else 20_000, 5))
    y = x.sum(axis=1) + random.normal(size=len(x))
    columns = {f"x{i}": column for i, column in enumerate(x.T)}
    table = pa.table(columns | {"y": y})

    def train() -> Mapping[str, Any]:
        with (
            _running(model, models=1, processes=2, trains=True) as service,
            Client(str(service.client.base_url), _KEY) as client,
        ):
            half = service.load(seconds)["answered"] / seconds / 2
            alone = service.load(seconds, half)
            job = client.train(client.upload(table, name="rows"), "y", name="trained")
            events = job.events()
            while next(events).type != "epoch":
                pass
            beside = service.load(seconds, half)
            state = job.refresh().state
            job.cancel()
        if state != "running" and not smoke:
            raise SkippedError(f"the job did not train all the time: it is {state}")
        return _value(
            "p99 beside a training / p99", beside["p99_ms"] / alone["p99_ms"]
        ) | {
            "per_second": half,
            "alone": alone,
            "beside": beside,
        }

    _record(measured, "training", "a job of 20 000 rows", train)


PARTS: Mapping[str, Callable[[RecordFile, Path, bool], None]] = {
    "memory": _measure_memory,
    "requests": _measure_requests,
    "crashes": _measure_crashes,
    "large_body": _measure_large_body,
    "training": _measure_training,
}

_JSON = {"Content-Type": "application/json"}


def _value(figure: str, value: float) -> dict[str, Any]:
    return {"figure": figure, "value": value}


def _record(
    measured: RecordFile,
    part: str,
    case: str,
    function: Callable[[], Mapping[str, Any]],
) -> None:
    settings = {"net": "13-50-1", "num_samples": 100}
    measured.measure({"part": part, "case": case}, function, settings=settings)


def _path(number: int) -> str:
    return f"/v1/models/model-{number}:predict"


class _Service:
    """A service that runs, and its processes."""

    def __init__(self, process: psutil.Process, root: Path, model: Path) -> None:
        self._process = process
        self._root = root
        self._model = model
        self._count = 0
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{_PORT}",
            headers={"Authorization": f"Bearer {_KEY}"},
            timeout=300,
        )

    def processes(self) -> list[psutil.Process]:
        """Returns the API and the model processes."""
        return [self._process, *self.model_processes()]

    def model_processes(self) -> list[psutil.Process]:
        """Returns the model processes."""
        return [
            child
            for child in self._process.children()
            if "service.model_process.worker" in child.cmdline()
        ]

    def add_models(self, count: int) -> None:
        """Copies the model until there are some, and waits until all answer."""
        for number in range(self._count, count):
            path = self._root / f"model-{number}" / "1"
            path.parent.mkdir(parents=True)
            shutil.copytree(self._model, path)
        self._count = count
        self.wait_until_answered()

    def wait_until_answered(self) -> None:
        """Waits until every model has answered."""
        for number in range(self._count):
            while self._ask(number) != 200:
                if not self._process.is_running():
                    raise SkippedError("the service does not start")
                time.sleep(0.05)

    def slowest(self, seconds: float) -> float:
        """Returns the longest time of a small prediction."""
        longest, end = 0.0, time.perf_counter() + seconds
        while (begin := time.perf_counter()) < end:
            if self._ask(0) == 200:
                longest = max(longest, time.perf_counter() - begin)
        return longest

    def send(self, count: int) -> None:
        """Sends predictions over 64 connections."""
        while count > 0:
            count -= self.load(2.0 if count < 10_000 else 20.0)["answered"]

    def load(self, seconds: float, rate: float = 0.0) -> dict[str, Any]:
        """Sends predictions for a time, as fast as possible or at a rate."""
        return send_load(
            _PORT,
            _path(0),
            _BODY,
            _KEY,
            connections=64,
            seconds=seconds,
            deadline=1.0,
            rate=rate,
        )

    def _ask(self, number: int) -> int:
        try:
            return self.client.post(_path(number), json=_BODY).status_code
        except httpx.TransportError:
            return 0


@contextmanager
def _running(
    model: Path, models: int, processes: int, trains: bool = False
) -> Iterator[_Service]:
    """Runs the service with some models until the block ends."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "models")
        root.mkdir()
        application = ["--factory", "service.app:create_app", "--port", str(_PORT)]
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", *application),
                *("--log-level", "error", "--no-access-log"),
            ],
            cwd=_FOLDER.parent,
            env=os.environ
            | {
                "TFBBB_MODELS": str(root),
                "TFBBB_DATA_DIR": str(Path(directory, "data")),
                "TFBBB_ADMIN_KEY": _KEY,
                "TFBBB_START_DISPATCHER": str(trains),
                "TFBBB_MODEL_PROCESSES": str(processes),
            },
        )
        service = _Service(psutil.Process(process.pid), root, model)
        try:
            service.add_models(models)
            while service.client.get("/health/ready").status_code != 200:
                time.sleep(0.1)
            yield service
        finally:
            service.client.close()
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
