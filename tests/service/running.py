"""Whole services in processes of their own, and what may be asked of several."""

import itertools
import os
import shutil
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager, suppress

import httpx
import psutil
import pytest
from sqlalchemy import select

from service.job_process.publish import publish, staging_directory
from service.shared.database.tables import ModelVersion
from service.shared.job_state import ENDED
from tests.ports import free_port
from tests.service.queued import job, states, submitted
from tests.service.serving import ADMIN_KEY, AS_ADMIN
from tests.waiting import wait_until

ROW = [1.0, 2.0, 3.0]
TABLE = "x,y\n" + "".join(f"{0.1 * i:.1f},{i % 7}\n" for i in range(60))
# Of single precision in batches of several sizes; the versions differ by 1000.
_TOLERANCE = 1e-2
# For jobs whose workers may have to start anew, on a loaded machine.
_SECONDS_TO_END = 600.0
_KINDS = {
    "api": "service.api.worker",
    "worker": "tests.service.job_process.stand_in_worker",
}


class Replica:
    """A service with stand-in workers, a log and a port of its own.

    Its directory has its log, and its data unless the variables say otherwise.
    """

    def __init__(self, directory, **variables):
        port = free_port()
        self._environment = {
            **os.environ,
            "TFBBB_ADMIN_KEY": ADMIN_KEY,
            "TFBBB_DATA_DIR": str(directory),
            "TFBBB_ACCESS_LOG": "off",
            "TFBBB_WORKERS": "1",
            "TFBBB_JOB_SLOTS": "1",
            **variables,
        }
        program = ["tests.service.stand_in_service", "serve"]
        self._command = [sys.executable, "-m", *program, "--port", str(port)]
        directory.mkdir(parents=True)
        self.log = directory / "log"
        self.url = f"http://127.0.0.1:{port}"
        self.port = port
        self.client = httpx.Client(base_url=self.url, headers=AS_ADMIN, timeout=60)
        self.start()

    def start(self):
        with self.log.open("ab") as log:
            self.process = psutil.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def is_ready(self, path="/health/ready"):
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        try:
            return self.client.get(path).status_code == 200
        except httpx.TransportError:
            return False

    def wait_until_ready(self):
        while not self.is_ready():
            time.sleep(0.1)

    def children(self, kind=None):
        """The processes below the service: all, or those of one kind."""
        found = []
        with suppress(psutil.NoSuchProcess):
            for child in self.process.children(recursive=True):
                with suppress(psutil.Error):
                    if kind is None or _KINDS[kind] in child.cmdline():
                        found.append(child)
        return found

    def kill(self, kind):
        """Kills the `service`, its `parent`, all `workers`, or one of `_KINDS`.

        Returns when the process has ended. A killed service is not started again.
        """
        victims = {
            "service": [self.process, *self.children()],
            "parent": [self.process],
            "workers": self.children("worker"),
        }
        found = victims.get(kind) or self.children(kind)[:1]
        for victim in found:
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        psutil.wait_procs(found)

    def predict(self, path, row):
        """Asks for a prediction; `path` is `NAME`, with a version or a label."""
        path = f"/v1/models/{path}:predict"
        return self.client.post(path, json={"instances": [row]})

    def mean(self, path, row):
        response = self.predict(path, row)
        assert response.status_code == 200, response.text
        return float(response.json()["predictions"][0]["mean"][0])

    def post(self, path, **request):
        response = self.client.post(path, **request)
        assert response.is_success, response.text
        return response.json()

    def stop(self):
        """Ends it and all that it has started; returns what had to be killed."""
        below = self.children()
        if self.process.is_running():
            self.process.terminate()
        with suppress(psutil.TimeoutExpired):
            self.process.wait(60)
        _, alive = psutil.wait_procs([self.process, *below], timeout=60)
        for process in alive:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.client.close()
        return alive


@contextmanager
def stopped_at_the_end(*replicas):
    try:
        yield
    finally:
        for replica in replicas:
            replica.stop()


def means_of_two_versions(replicas, queue, saved_models):
    """Publishes two versions of `diabetes`; returns their means of `ROW`.

    Waits until all replicas answer by both.
    """
    found = {}
    for number in 1, 2:
        # The result of a job, which no worker leases.
        (job_id,) = submitted(
            queue, name="diabetes", not_before=1e12, spec={"target": "y"}
        )
        lease = queue.lease_job(job_id)
        assert lease is not None
        queue.begin_export(lease)
        staged = staging_directory(queue.store.models, lease)
        shutil.copytree(saved_models / "diabetes" / str(number), staged)
        assert publish(queue, lease, staged) == number
        shutil.rmtree(staged)
        for replica in replicas:
            path = f"diabetes/versions/{number}"
            while replica.predict(path, ROW).status_code != 200:
                time.sleep(0.05)
            found[number] = replica.mean(path, ROW)
    assert abs(found[1] - found[2]) > 100
    return found


def point(replica, version):
    """Moves the label `live` of `diabetes`."""
    path = "/v1/models/diabetes/labels/live"
    response = replica.client.put(path, json={"version": version})
    assert response.is_success, response.text


def new_key(replica, **fields):
    """Creates a key; returns its id, and headers that send it."""
    spec = {"name": f"robot {uuid.uuid4()}", "scopes": ["train"]} | fields
    made = replica.post("/v1/keys", json=spec)
    return made["id"], {"Authorization": f"Bearer {made['key']}"}


def version_of(means, response):
    """Returns the version that has answered, after a check of its answer."""
    assert response.status_code == 200, response.text
    answer = response.json()
    number = int(answer["model_version"])
    mean = answer["predictions"][0]["mean"][0]
    assert mean == pytest.approx(means[number], abs=_TOLERANCE)
    return number


def submit(replicas, name, **training):
    """Queues a job, however often processes are killed; returns its id."""
    csv = {"Content-Type": "text/csv"}
    table = ask_until_answered(replicas, "/v1/datasets", content=TABLE, headers=csv)
    body = {
        "dataset_id": table["id"],
        "target": "y",
        "task": "regression",
        "name": name,
        "training": training,
    }
    once = {"Idempotency-Key": name}
    made = ask_until_answered(replicas, "/v1/jobs", json=body, headers=once)
    return str(made["id"])


def ask_until_answered(replicas, path, headers, **body):
    """Posts to one replica after the other until one has answered."""
    for replica in itertools.cycle(replicas):
        try:
            answer = httpx.post(
                replica.url + path, headers={**AS_ADMIN, **headers}, timeout=60, **body
            )
        except httpx.TransportError:
            pass
        else:
            if answer.status_code < 500:
                assert answer.is_success, answer.text
                return answer.json()
        time.sleep(0.2)
    raise AssertionError


def check_jobs(queue, jobs):
    """Waits for the end of jobs: each has one, and each success has one version.

    Returns those that succeeded.
    """
    wait_until(
        lambda: all(job(queue, job_id).state in ENDED for job_id in jobs),
        _SECONDS_TO_END,
    )
    with queue.database.reading() as session:
        versions = list(session.scalars(select(ModelVersion)))
    succeeded = []
    for job_id in jobs:
        row, told = job(queue, job_id), states(queue, job_id)
        assert [state for state in told if state in ENDED] == told[-1:] == [row.state]
        published = [v.number for v in versions if v.job_id == job_id]
        if row.state == "succeeded":
            succeeded.append(row)
            assert published == [row.version]
        else:
            # A worker that was killed three times without progress.
            assert "3 attempts" in (row.error or "")
            assert published == []
    assert 2 * len(succeeded) > len(jobs)
    for name in {version.name for version in versions}:
        # The store has nothing beside what is recorded: nothing is published twice.
        recorded = sorted(v.number for v in versions if v.name == name)
        assert queue.store.numbers(name) == recorded
    return succeeded
