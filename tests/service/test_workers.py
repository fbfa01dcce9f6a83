"""The service as operators run it: a parent, and API processes that share a port."""

import json
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.ports import accepts
from tests.service.running import Replica, stopped_at_the_end
from tests.service.serving import ADMIN_KEY, AS_ADMIN
from tests.waiting import wait_until

PATH = "/v1/models/diabetes:predict"
BODY = b'{"instances": [[1, 2, 3]]}'


@pytest.fixture(scope="module")
def service(saved_models, tmp_path_factory):
    service = Replica(
        tmp_path_factory.mktemp("service") / "data",
        TFBBB_MODELS=str(saved_models),
        TFBBB_WORKERS="2",
        TFBBB_JOB_SLOTS="0",
        TFBBB_LOG_FORMAT="json",
        TFBBB_ACCESS_LOG="json",
    )
    with stopped_at_the_end(service):
        wait_until(service.is_ready)
        wait_until(lambda: len(api_processes(service)) == 2)
        yield service


def ask_often(service, times):
    """Predicts over new connections, which any of the processes may accept."""

    def ask(_):
        url = service.url + PATH
        return httpx.post(url, content=BODY, headers=AS_ADMIN, timeout=60)

    with ThreadPoolExecutor(16) as executor:
        return list(executor.map(ask, range(times)))


def samples(service, name):
    text = httpx.get(service.url + "/metrics", headers=AS_ADMIN, timeout=60).text
    return [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    ]


def count(service):
    """How many predictions the service has counted."""
    return sum(
        sample.value
        for sample in samples(service, "tfbbb_http_requests_total")
        if sample.labels["route"].endswith(":predict")
    )


def api_processes(service):
    """The API processes that are alive and have their models."""
    found = {str(process.pid): process for process in service.children("api")}
    told = samples(service, "tfbbb_api_resident_memory_bytes")
    return [found[x.labels["pid"]] for x in told if x.labels["pid"] in found]


def test_every_line_of_the_output_is_json_with_time_and_level(service):
    ask_often(service, 1)
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


def test_an_api_process_imports_nothing_large_that_it_does_not_need(service):
    large = ("tensorflow", "pandas", "matplotlib", "sklearn")
    for process in api_processes(service):
        mapped = " ".join(region.path for region in process.memory_maps())
        assert "site-packages/numpy/" in mapped
        assert not [name for name in large if f"site-packages/{name}/" in mapped]


def test_processes_share_the_counters(service):
    before = count(service)
    answers = ask_often(service, 60)
    assert {answer.status_code for answer in answers} == {200}
    means = {answer.json()["predictions"][0]["mean"][0] for answer in answers}
    # Single precision, in batches of several sizes.
    assert max(means) - min(means) < 1e-5 * min(means)
    # A request is counted when its response is sent.
    wait_until(lambda: count(service) == before + 60)


def test_connections_are_spread_over_the_processes(service):
    with ExitStack() as opened:
        for _ in range(60):
            connection = socket.create_connection(("127.0.0.1", service.port))
            opened.enter_context(connection)

        def counts():
            return [len(x.net_connections("tcp")) for x in api_processes(service)]

        # Beside the connections, each has the socket on which it listens.
        wait_until(lambda: sum(counts()) >= 60 and min(counts()) > 5)


def test_others_answer_while_a_killed_process_is_started_anew(service):
    before = count(service)
    killed, *others = api_processes(service)
    killed.kill()
    killed.wait()
    answers = ask_often(service, 20)
    assert {answer.status_code for answer in answers} == {200}
    # The counts of the killed process are kept.
    wait_until(lambda: count(service) == before + 20)
    wait_until(lambda: len(api_processes(service)) == 2)
    assert killed not in api_processes(service)
    assert {*others} < {*api_processes(service)}


def test_a_version_that_becomes_latest_answers_from_every_process(service):
    for version in (1, 2):
        path = "/v1/models/diabetes/labels/latest"
        moved = service.client.put(path, json={"version": version})
        assert moved.is_success, moved.text
        answers = ask_often(service, 30)
        versions = {answer.json()["model_version"] for answer in answers}
        assert versions == {str(version)}


def test_processes_end_with_the_parent(service):
    # The last test of this service: it ends it.
    children = service.children()
    service.process.kill()
    gone, alive = psutil.wait_procs(children, timeout=60)
    assert gone
    assert not alive


def test_service_that_is_stopped_finishes_its_requests_and_leaves_no_file(
    saved_models, tmp_path
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    variables = {"TFBBB_MODELS": str(saved_models), "TMPDIR": str(temporary)}
    service = Replica(tmp_path / "service", TFBBB_JOB_SLOTS="0", **variables)
    with stopped_at_the_end(service):
        wait_until(service.is_ready)
        assert service.predict("diabetes", [1, 2, 3]).status_code == 200
        assert list(temporary.iterdir())
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            head = (
                f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {ADMIN_KEY}\r\n"
                f"Content-Length: {len(BODY)}\r\n\r\n"
            )
            connection.sendall(head.encode() + BODY[:10])
            # Whatever the process read of it, it has read it when it answers
            # something that was sent later.
            assert service.client.get("/health/live").status_code == 200
            service.process.send_signal(signal.SIGTERM)
            while "Shutting down" not in service.log.read_text():
                time.sleep(0.05)
            connection.sendall(BODY[10:])
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert b'"predictions"' in answer
        assert service.process.wait() == 0
        assert not accepts(service.port)
    assert list(temporary.iterdir()) == []
