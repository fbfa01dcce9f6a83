"""Two services behind proxies: one is killed; versions and labels reach both.

    apt-get install caddy haproxy postgresql
    python benchmarks/replicas.py

Two services share PostgreSQL and an object store, all on this machine. An open loop
sends 500 predictions per second through Caddy, with TLS, and HAProxy, with the rules of
`deploy/`. In each round all processes of one service are killed (SIGKILL) at
a random moment, and it is started again. Then, under the same load: the seconds from a
publication, and from the move of a label, to the answers of both services.
"""

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from load_generator import send_load
from program import argument_parser, markdown_table, positive_integer, run
from records import RecordFile
from serving import export_network

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from service.shared.database import Database
from service.shared.queue import Queue
from service.shared.settings import Settings

try:
    from tests.ports import accepts, free_port
    from tests.service.postgresql import new_database, postgresql_server
    from tests.service.replicas.running import (
        Replica,
        publish_copy,
        stopped_at_the_end,
    )
    from tests.service.serving import ADMIN_KEY
    from tests.service.stores import s3_server
except ModuleNotFoundError as error:
    sys.exit(
        "Error: this benchmark runs the servers of the tests: run it in a checkout, "
        f"after `make install`. Received: {error}"
    )

_DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
_RATE = 500.0
_CONNECTIONS = 256
_DEADLINE = 10.0
_ROW = [0.1 * place for place in range(13)]
# Between the kill of a service and its start, and of each load before the kill.
_SECONDS_DOWN, _SECONDS_BEFORE = 10.0, (5.0, 10.0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and reports."""
    parser = argument_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=50.0, help="of each load")
    parser.add_argument(
        "--rounds", type=positive_integer, default=2, help="services killed"
    )
    options = parser.parse_args(arguments)
    for name in ("caddy", "haproxy"):
        if shutil.which(name) is None:
            sys.exit(f"Error: {name} is not installed; run `apt-get install {name}`.")
    seconds, rounds = (5.0, 1) if options.smoke else (options.seconds, options.rounds)
    run(__file__, options, lambda measured: measure(measured, seconds, rounds), report)


def measure(measured: RecordFile, seconds: float, rounds: int) -> None:
    """Adds the records of kills, publications and labels."""
    settings = {"rate": _RATE, "seconds": seconds, "rows": 1, "net": "13-50-1"}
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        replicas, queue = stack.enter_context(_services(root))
        model = root / "exported" / "1"
        export_network(model)
        for _ in range(2):
            publish_copy(queue, model, "small")
        port = stack.enter_context(_proxies([r.port for r in replicas], root))
        load = Load(port)

        def published() -> float:
            return publish(replicas, queue, model)

        def moved() -> float:
            return move_label(replicas)

        wait_for_labels(replicas)
        load.send(3.0)  # Warms.
        chance = random.Random(0)
        for place in range(rounds):
            measured.measure(
                {"case": f"kill {1 + place}"},
                partial(kill_one, replicas[place % 2], load, seconds, chance),
                settings=settings,
            )
        wait_for_labels(replicas)
        for case, function, share in (
            ("label moved", moved, 0.2),
            ("version published", published, 1.0),
        ):
            for rate, times in ((0.0, idle), (_RATE, during)):
                measured.measure(
                    {"case": case, "predictions_per_second": rate},
                    partial(times, load, share * seconds, function),
                    settings=settings,
                )


def report(measured: RecordFile) -> str:
    """Returns the tables in Markdown."""
    kills = [record for record in measured.records if "phases" in record]
    moves = [record for record in measured.records if "times" in record]
    counts = ("asked", "in_flight", "other", "unsent")
    failures = markdown_table(
        ["", "asked", "failed in flight", "failed otherwise", "not sent", "ready, s"],
        [
            [
                *(str(record[name]) for name in ("case", *counts)),
                f"{record['seconds_to_ready']:.1f}",
            ]
            for record in kills
        ],
    )
    latencies = markdown_table(
        ["", "answers/s", "p50, ms", "p99, ms", "p99.9, ms", "most, ms"],
        [
            [
                f"{record['case']}: {name}",
                f"{phase['per_second']:.0f}",
                *(f"{ms:.1f}" for ms in phase["milliseconds"].values()),
            ]
            for record in kills
            for name, phase in record["phases"].items()
        ],
    )
    cores = markdown_table(
        ["cores", *(kills[0]["cores"] if kills else [])],
        [
            [record["case"], *(f"{used:.2f}" for used in record["cores"].values())]
            for record in kills
        ],
    )
    times = markdown_table(
        ["", "predictions/s", "times", "median, s", "most, s", "failed predictions"],
        [
            [
                record["case"],
                f"{record['predictions_per_second']:g}",
                str(record["times"]),
                *(f"{record[name]:.3f}" for name in ("median", "most")),
                str(record["failed"]),
            ]
            for record in moves
        ],
    )
    return "\n\n".join(
        [
            f"{_RATE:g} predictions/s, one of two services killed and started again:",
            failures,
            latencies,
            cores,
            "Seconds until both services answer by a version:",
            times,
        ]
    )


class Load:
    """The predictions that are sent through the proxy.

    Args:
        port: The port of the proxy.
    """

    def __init__(self, port: int) -> None:
        self._port = port

    def send(self, seconds: float) -> dict[str, Any]:
        """Sends predictions for some time; returns the figures."""
        return send_load(
            self._port,
            "/v1/models/small:predict",
            {"instances": [_ROW]},
            ADMIN_KEY,
            connections=_CONNECTIONS,
            seconds=seconds,
            deadline=_DEADLINE,
            rate=_RATE,
            tls=True,
            list_requests=True,
        )

    @contextmanager
    def running(self, seconds: float) -> Iterator[tuple[dict[str, Any], Any]]:
        """Sends during the block; yields the figures to come, and the thread."""
        figures: dict[str, Any] = {}
        thread = threading.Thread(target=lambda: figures.update(self.send(seconds)))
        thread.start()
        try:
            yield figures, thread
        finally:
            thread.join()


def kill_one(
    replica: Replica, load: Load, seconds: float, chance: random.Random
) -> dict[str, Any]:
    """Kills a service under load and starts it again; returns the figures."""
    with load.running(seconds) as (figures, _):
        began = time.perf_counter()
        before = _cores()
        time.sleep(chance.uniform(*_SECONDS_BEFORE))
        below, cores = replica.children(), _cores()
        killed_at = time.perf_counter()
        replica.process.kill()
        replica.process.wait()
        dead_at = time.perf_counter()
        for process in below:
            process.kill()
        time.sleep(_SECONDS_DOWN)
        replica.start()
        started_at = time.perf_counter()
        replica.wait_until_ready()
        ready_at = time.perf_counter()
    requests = figures["requests"]
    first = min(due for due, *_ in requests)
    # The load may end before the service is ready.
    phases = {
        "both run": (first, killed_at),
        "one is killed": (killed_at, started_at),
        "it starts again": (started_at, ready_at),
        "both run again": (ready_at, first + seconds),
    }
    failed = [(due, due + took) for due, took, status in requests if status != 200]
    in_flight = sum(sent <= dead_at and killed_at <= over for sent, over in failed)
    return {
        "asked": len(requests),
        "in_flight": in_flight,
        "other": len(failed) - in_flight,
        # All connections of the client waited.
        "unsent": figures["unsent"],
        "statuses": Counter(str(status) for *_, status in requests),
        "refusals": figures["refusals"],
        "milliseconds_to_die": 1e3 * (dead_at - killed_at),
        "seconds_to_ready": ready_at - started_at,
        "client_lag_p99_ms": figures["client_lag_p99_ms"],
        "cores": {
            name: (cores[name] - before.get(name, 0.0)) / (killed_at - began)
            for name in cores
        },
        "phases": {
            name: _phase(requests, begin, min(end, first + seconds))
            for name, (begin, end) in phases.items()
            if begin < first + seconds
        },
    }


def _phase(
    requests: Sequence[tuple[float, float, int]], begin: float, end: float
) -> dict[str, Any]:
    found = sorted(
        seconds for due, seconds, status in requests if begin <= due < end and status
    )
    shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "most": 1.0}
    return {
        "per_second": len(found) / (end - begin),
        "milliseconds": {
            name: 1e3 * found[min(int(share * len(found)), len(found) - 1)]
            for name, share in shares.items()
        },
    }


def _cores() -> dict[str, float]:
    """Returns the seconds of processor time of the kinds of processes so far."""
    kinds = {
        "caddy": "Caddy",
        "haproxy": "HAProxy",
        "service.model_process.worker": "model processes",
        "serve": "API processes",
        "load_generator.py": "clients",
    }
    found = dict.fromkeys(kinds.values(), 0.0)
    for process in psutil.Process().children(recursive=True):
        try:
            words, times = process.cmdline(), process.cpu_times()
        except psutil.Error:
            continue
        for word, kind in kinds.items():
            if any(part.rpartition("/")[2] == word for part in words):
                found[kind] += times.user + times.system
    used = psutil.cpu_times()
    return found | {"all": sum(used) - used.idle - used.iowait}


@contextmanager
def _services(root: Path) -> Iterator[tuple[list[Replica], Queue]]:
    """Runs two services; yields them, and a queue by which to publish."""
    with postgresql_server() as server, s3_server() as s3:
        url, store = new_database(server), s3.new_store()
        replicas = [
            Replica(root / name, url, store, TFBBB_START_DISPATCHER="0")
            for name in ("first", "second")
        ]
        settings = Settings(
            data_dir=root / "elsewhere",
            store=store,
            database_url=url,
            lease_seconds=600.0,
        )
        database = Database(url)
        with stopped_at_the_end(*replicas):
            for replica in replicas:
                replica.wait_until_ready()
            yield replicas, Queue(database, settings)
        database.close()


@contextmanager
def _proxies(ports: Sequence[int], root: Path) -> Iterator[int]:
    """Runs Caddy and HAProxy with the rules of `deploy/`; yields the port of Caddy."""
    redirects, port, balancer = free_port(), free_port(), f"127.0.0.1:{free_port()}"
    path = root / "Caddyfile"
    # Its port 80 may be in use on this machine.
    text = (_DEPLOY / "Caddyfile").read_text()
    path.write_text(text.replace("admin off", f"admin off\n\thttp_port {redirects}"))
    certificate = f"-keyout {root}/tls.key -out {root}/tls.crt -subj /CN=localhost"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 {certificate}"
    subprocess.run(command.split(), check=True, capture_output=True)
    variables = {
        "SITE_ADDRESS": f"localhost:{port}",
        "TLS": f"{root}/tls.crt {root}/tls.key",
        "BALANCER": balancer,
        "LISTEN": balancer,
        "REPLICA_1": f"127.0.0.1:{ports[0]}",
        "REPLICA_2": f"127.0.0.1:{ports[1]}",
        "XDG_DATA_HOME": str(root),
        "XDG_CONFIG_HOME": str(root),
    }
    with ExitStack() as stack:
        log = stack.enter_context((root / "proxies.log").open("wb"))
        processes = []
        for program, *arguments in (
            ("haproxy", "-f", str(_DEPLOY / "haproxy.cfg")),
            ("caddy", "run", "--config", str(path), "--adapter", "caddyfile"),
        ):
            process = subprocess.Popen(
                [program, *arguments],
                env=os.environ | variables,
                stdout=log,
                stderr=log,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            processes.append(process)
        while not accepts(port):
            if any(process.poll() is not None for process in processes):
                raise SystemExit((root / "proxies.log").read_text())
            time.sleep(0.1)
        yield port


def during(load: Load, seconds: float, measure: Callable[[], float]) -> dict[str, Any]:
    """Measures times again and again under load; returns their figures."""
    found = []
    with load.running(seconds) as (figures, thread):
        while thread.is_alive():
            found.append(measure())
    failed = sum(status != 200 for *_, status in figures["requests"])
    return _summary(found) | {"failed": failed, "unsent": figures["unsent"]}


def idle(load: Load, seconds: float, measure: Callable[[], float]) -> dict[str, Any]:
    """Measures times again and again without load; returns their figures."""
    found, due = [], time.perf_counter() + seconds
    while time.perf_counter() < due:
        found.append(measure())
    return _summary(found) | {"failed": 0, "unsent": 0}


def _summary(seconds: list[float]) -> dict[str, Any]:
    return {
        "times": len(seconds),
        "median": statistics.median(seconds),
        "most": max(seconds),
    }


def publish(replicas: Sequence[Replica], queue: Queue, model: Path) -> float:
    """Publishes a version; returns the seconds until both services answer by it."""
    number = publish_copy(queue, model, "small")
    begin = time.perf_counter()
    for replica in replicas:
        # A replica that is busy loading may refuse a request (503).
        while _version(replica, "small", may_refuse=True) != number:
            time.sleep(0.02)
    return time.perf_counter() - begin


def move_label(replicas: Sequence[Replica]) -> float:
    """Moves a label by one service; returns the seconds until both have followed.

    Raises:
        AssertionError: If the old version answers a request after the move.
    """
    before = _version(replicas[0], "small/labels/live")
    mover, number = replicas[before % 2], 3 - before
    begin = time.perf_counter()
    _point(mover, "live", number)
    for replica in replicas:
        assert _version(replica, "small/labels/live") == number
    return time.perf_counter() - begin


def wait_for_labels(replicas: Sequence[Replica]) -> None:
    """Waits until both services answer by the versions that the label will name.

    Labels of their own keep these versions loaded.
    """
    for replica in replicas:
        for number in (1, 2):
            path = f"small/versions/{number}"
            while replica.predict(path, _ROW).status_code != 200:
                time.sleep(0.05)
            _point(replica, f"always-{number}", number)
    _point(replicas[0], "live", 1)


def _point(replica: Replica, label: str, number: int) -> None:
    replica.client.put(
        f"/v1/models/small/labels/{label}", json={"version": number, "force": True}
    ).raise_for_status()


def _version(replica: Replica, path: str, may_refuse: bool = False) -> int | None:
    """Returns the version that answers; None if the replica refuses the request."""
    response = replica.predict(path, _ROW)
    if may_refuse and response.status_code == 503:
        return None
    response.raise_for_status()
    return int(response.json()["model_version"])


if __name__ == "__main__":
    main()
