"""The parent, and API processes that share a port and the counters."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.service.serving import ADMIN_KEY, AS_ADMIN
from tests.waiting import wait_until

PATH = "/v1/models/diabetes:predict"
BODY = b'{"instances": [[1, 2, 3]]}'


class Service:
    """A service of three workers.

    Its output is in the file `log`.
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.log = log
        self.url = f"http://127.0.0.1:{port}"

    def ask(self) -> httpx.Response:
        """Predicts over a new connection, which any of the processes may accept."""
        return httpx.post(self.url + PATH, content=BODY, headers=AS_ADMIN, timeout=60)

    def ask_often(self, times: int) -> list[httpx.Response]:
        with ThreadPoolExecutor(16) as executor:
            return list(executor.map(lambda _: self.ask(), range(times)))

    def count(self) -> float:
        """Returns how many predictions the service has counted."""
        text = httpx.get(self.url + "/metrics", headers=AS_ADMIN, timeout=60).text
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "tfbbb_http_requests_total"
            and sample.labels["route"].endswith(":predict")
        )

    def children(self, module: str) -> list[psutil.Process]:
        return [
            child
            for child in psutil.Process(self.process.pid).children(recursive=True)
            if module in " ".join(command_of(child))
        ]

    def workers(self) -> list[psutil.Process]:
        """Returns the API processes that are alive and have their models."""
        found = {str(each.pid): each for each in self.children("stand_in_api")}
        text = httpx.get(self.url + "/metrics", headers=AS_ADMIN, timeout=60).text
        return [
            found[sample.labels["pid"]]
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "tfbbb_api_resident_memory_bytes"
            and sample.labels["pid"] in found
        ]


def command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@contextmanager
def serving_by_several(
    models: Path,
    data_dir: Path,
    program: str = "tests.service.stand_in_serve",
    **settings: str,
) -> Iterator[Service]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "TFBBB_ADMIN_KEY": ADMIN_KEY,
        "TFBBB_JOB_SLOTS": "0",
        "TFBBB_ACCESS_LOG": "off",
        "TFBBB_DATA_DIR": str(data_dir),
    }
    environment |= settings
    command = [
        *(sys.executable, "-m", program),
        *("serve", "--workers", "3"),
        *("--port", str(port), "--models", str(models)),
    ]
    log = data_dir.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=output
        )
    service = Service(process, port, log)
    try:

        def is_ready() -> bool:
            assert process.poll() is None
            try:
                answer = httpx.get(service.url + "/health/ready", timeout=60)
            except httpx.ConnectError:
                return False
            return answer.status_code == 200

        wait_until(is_ready)
        yield service
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def service(
    saved_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    logs = {"TFBBB_LOG_FORMAT": "json", "TFBBB_ACCESS_LOG": "json"}
    directory = tmp_path_factory.mktemp("data")
    with serving_by_several(saved_models, directory, **logs) as service:
        wait_until(lambda: len(service.workers()) == 3)
        yield service


def test_every_line_of_the_output_is_json_with_time_and_level(service: Service) -> None:
    service.ask()
    # A request is logged when its response is sent.
    wait_until(lambda: PATH in service.log.read_text())
    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    assert all({"time", "level", "process"} <= line.keys() for line in lines)
    said = " ".join(line.get("message", "") for line in lines)
    assert "requires a key" in said
    assert "Application startup complete." in said
    assert "creating the tables of the database" in said
    paths = [line["path"] for line in lines if "path" in line]
    assert PATH in paths
    assert "/health/ready" not in [
        line["path"] for line in lines if line.get("status") == 200
    ]
    assert {line["key"] for line in lines if line.get("path") == PATH} == {
        "TFBBB_ADMIN_KEY"
    }


def test_workers_share_the_counters(service: Service) -> None:
    before = service.count()
    answers = service.ask_often(60)
    assert {answer.status_code for answer in answers} == {200}
    means = {answer.json()["predictions"][0]["mean"][0] for answer in answers}
    # Single precision, in batches of several sizes.
    assert max(means) - min(means) < 1e-5 * min(means)
    # A request is counted when its response is sent.
    wait_until(lambda: service.count() == before + 60)


def test_connections_are_spread_over_the_processes(service: Service) -> None:
    port = int(service.url.rpartition(":")[2])
    with ExitStack() as opened:
        for _ in range(60):
            connection = socket.create_connection(("127.0.0.1", port))
            opened.enter_context(connection)

        def counts() -> list[int]:
            return [len(each.net_connections("tcp")) for each in service.workers()]

        # Beside the connections, each has the socket on which it listens.
        wait_until(lambda: sum(counts()) >= 60 and min(counts()) > 5)


def test_others_answer_while_a_killed_worker_is_started_anew(service: Service) -> None:
    before = service.count()
    killed, *others = service.workers()
    killed.kill()
    killed.wait()
    answers = service.ask_often(20)
    assert {answer.status_code for answer in answers} == {200}
    # The counts of the killed worker are kept.
    wait_until(lambda: service.count() == before + 20)
    wait_until(lambda: len(service.workers()) == 3)
    assert killed not in service.workers()
    assert {*others} < {*service.workers()}


def test_a_version_that_becomes_latest_answers_from_every_worker(
    service: Service,
) -> None:
    path = f"{service.url}/v1/models/diabetes/labels/latest"
    for version in (1, 2):
        moved = httpx.put(path, json={"version": version}, headers=AS_ADMIN, timeout=60)
        assert moved.is_success, moved.text
        versions = {x.json()["model_version"] for x in service.ask_often(30)}
        assert versions == {str(version)}


def test_sigterm_ends_the_service_and_leaves_no_file(
    saved_models: Path, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {"TMPDIR": str(temporary)}
    with serving_by_several(saved_models, tmp_path, "tfbbb", **environment) as service:
        assert list(temporary.iterdir())
    assert service.process.returncode == 0
    assert list(temporary.iterdir()) == []


def test_workers_end_with_the_parent(service: Service) -> None:
    # The last test of this file: it ends the service.
    children = psutil.Process(service.process.pid).children(recursive=True)
    service.process.send_signal(signal.SIGKILL)
    gone, alive = psutil.wait_procs(children, timeout=60)
    assert gone
    assert not alive
