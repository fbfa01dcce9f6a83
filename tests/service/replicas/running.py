"""Whole services that share a database and a store."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from service.job_process.publish import publish, staging_directory
from service.shared.queue import Queue
from tests.ports import free_port
from tests.service.queued import submitted
from tests.service.serving import ADMIN_KEY, AS_ADMIN

ROW = [1.0, 2.0, 3.0]
TABLE = "x,y\n" + "".join(f"{0.1 * i:.1f},{i % 7}\n" for i in range(60))
# Of single precision in batches of several sizes; the versions differ by 1000.
_TOLERANCE = 1e-2
SERVICE = ("tfbbb", "serve")
STAND_IN = ("tests.service.job_process.stand_in_service",)
_KINDS = {
    "models": {"service.model_process.worker"},
    "dispatcher": {
        "service.job_process.dispatcher",
        "tests.service.job_process.stand_in_dispatcher",
    },
    "trainer": {"service.trainer", "tests.service.job_process.stand_in_trainer"},
}


class Replica:
    """A service, with a data directory and a port of its own.

    Args:
        directory: Its data directory and its log.
        database_url: The database that it shares.
        store: The store that it shares.
        host: The address on which it listens.
        module: What to run: the service, or the one with stand-in trainers.
        prefix: A command that starts the service, such as `ip netns exec NAME`.
        **variables: Its environment, beside that of this process.
    """

    def __init__(
        self,
        directory: Path,
        database_url: str,
        store: str,
        *,
        host: str = "127.0.0.1",
        module: Sequence[str] = SERVICE,
        prefix: Sequence[str] = (),
        **variables: str,
    ) -> None:
        port = free_port()
        self._environment: Mapping[str, str] = {
            **os.environ,
            "TFBBB_ADMIN_KEY": ADMIN_KEY,
            "TFBBB_DATABASE_URL": database_url,
            "TFBBB_DATA_DIR": str(directory),
            "TFBBB_STORE": store,
            "TFBBB_ACCESS_LOG": "off",
            "TFBBB_MODEL_PROCESSES": "1",
            "TFBBB_JOB_SLOTS": "1",
            **variables,
        }
        self._command = [*prefix, sys.executable, "-m", *module]
        self._command += ["--host", host, "--port", str(port)]
        directory.mkdir(parents=True)
        self.log = directory / "log"
        self.url = f"http://{host}:{port}"
        self.port = port
        self.client = httpx.Client(base_url=self.url, headers=AS_ADMIN, timeout=60)
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = psutil.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def is_ready(self, path: str = "/health/ready") -> bool:
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        try:
            return self.client.get(path).status_code == 200
        except httpx.TransportError:
            return False

    def wait_until_ready(self) -> None:
        while not self.is_ready():
            time.sleep(0.1)

    def children(self, kind: str | None = None) -> list[psutil.Process]:
        """The processes below the service: all, or those of one kind."""
        found = []
        with suppress(psutil.NoSuchProcess):
            for child in self.process.children(recursive=True):
                with suppress(psutil.Error):
                    if kind is None or _KINDS[kind] & set(child.cmdline()):
                        found.append(child)
        return found

    def kill(self, kind: str) -> None:
        """Kills the whole `service`, its `api`, or another process; see `_KINDS`.

        Returns when the process has ended. A killed service is not started again.
        """
        victims = {"service": [self.process, *self.children()], "api": [self.process]}
        found = victims.get(kind) or self.children(kind)[:1]
        for victim in found:
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        psutil.wait_procs(found)

    def predict(
        self, path: str, row: Sequence[float], headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Asks for a prediction; `path` is `NAME`, with a version or a label."""
        return self.client.post(
            f"/v1/models/{path}:predict", json={"instances": [row]}, headers=headers
        )

    def mean(self, path: str, row: Sequence[float]) -> float:
        response = self.predict(path, row)
        assert response.status_code == 200, response.text
        return float(response.json()["predictions"][0]["mean"][0])

    def post(self, path: str, **request: Any) -> Any:
        response = self.client.post(path, **request)
        assert response.is_success, response.text
        return response.json()

    def stop(self) -> None:
        """Ends it and all that it has started."""
        below = self.children()
        if self.process.is_running():
            self.process.terminate()
        with suppress(psutil.TimeoutExpired):
            self.process.wait(60)
        _, alive = psutil.wait_procs([self.process, *below], timeout=10)
        for process in alive:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.client.close()


@contextmanager
def stopped_at_the_end(*replicas: Replica) -> Iterator[None]:
    try:
        yield
    finally:
        for replica in replicas:
            replica.stop()


def wait_until(condition: Any, seconds: float = 60.0) -> float:
    """Waits for a condition; returns the seconds that it took."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, "it does not come true"
        time.sleep(0.02)
    return time.monotonic() - begin


def publish_copy(queue: Queue, model: Path, name: str) -> int:
    """Publishes a model as the result of a job, which no dispatcher leases."""
    (job_id,) = submitted(queue, name=name, not_before=1e12, spec={"target": "y"})
    lease = queue.lease_job(job_id, "elsewhere", 1)
    assert lease is not None
    queue.begin_export(lease)
    staged = staging_directory(queue.store.models, lease)
    shutil.copytree(model, staged)
    number = publish(queue, lease, staged)
    shutil.rmtree(staged)
    return number


def means_of_two_versions(
    replicas: Sequence[Replica], queue: Queue, real_models: Path
) -> dict[int, float]:
    """Publishes two versions of `diabetes`; returns their means of `ROW`.

    Waits until all replicas answer by both.
    """
    found: dict[int, float] = {}
    for number in 1, 2:
        model = real_models / "diabetes" / str(number)
        assert publish_copy(queue, model, "diabetes") == number
        for replica in replicas:
            path = f"diabetes/versions/{number}"
            while replica.predict(path, ROW).status_code != 200:
                time.sleep(0.05)
            found[number] = replica.mean(path, ROW)
    assert abs(found[1] - found[2]) > 100
    return found


def point(replica: Replica, version: int) -> None:
    """Moves the label `live` of `diabetes`."""
    path = "/v1/models/diabetes/labels/live"
    response = replica.client.put(path, json={"version": version, "force": True})
    assert response.is_success, response.text


def new_key(replica: Replica, **fields: Any) -> tuple[str, dict[str, str]]:
    """Creates a key; returns its id, and headers that send it."""
    spec = {"name": "a robot", "scopes": ["train"]} | fields
    made = replica.post("/v1/keys", json=spec)
    return made["id"], {"Authorization": f"Bearer {made['key']}"}


def version_of(means: Mapping[int, float], response: httpx.Response) -> int:
    """Returns the version that has answered, after a check of its answer."""
    assert response.status_code == 200, response.text
    answer = response.json()
    number = int(answer["model_version"])
    mean = answer["predictions"][0]["mean"][0]
    assert mean == pytest.approx(means[number], abs=_TOLERANCE)
    return number
