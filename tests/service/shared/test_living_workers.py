"""What the machine knows of its workers."""

import os
import subprocess
import sys

from service.job_process.upkeep import Upkeep
from service.shared.living_workers import (
    WorkerFile,
    any_worker_lives,
    take_dead_workers,
)
from service.shared.queue import Lease, Queue
from tests.service.queued import events, job, submitted
from tests.waiting import wait_until


def test_attempt_of_a_dead_worker_is_found_once(settings):
    found = []
    worker, idle = WorkerFile(settings), WorkerFile(settings)
    worker.write(Lease("job", 1))
    worker.write(Lease("job", 2))
    take_dead_workers(settings, found.append)
    assert (found, any_worker_lives(settings)) == ([], True)
    for ended in worker, idle:
        ended.close()
    assert not any_worker_lives(settings)
    for _ in range(2):
        take_dead_workers(settings, found.append)
    assert found == [Lease("job", 2)]


def test_job_of_a_killed_worker_does_not_wait_for_its_lease(queue):
    (job_id,) = submitted(queue, spec={"steps": 10**6})
    settings = queue.settings.model_copy(update={"lease_seconds": 600.0})
    command = [sys.executable, "-m", "tests.service.job_process.stand_in_worker"]
    worker = subprocess.Popen(command, env=os.environ | settings.environment())
    try:
        wait_until(lambda: "step" in job(queue, job_id).progress)
        upkeep = Upkeep(Queue(queue.database, settings))
        upkeep.do()
        assert job(queue, job_id).state == "running"
    finally:
        worker.kill()
        worker.wait()
    upkeep.do()
    requeued = job(queue, job_id)
    assert (requeued.state, requeued.deaths) == ("queued", 1)
    told = events(queue, job_id)[-1].data
    assert told["reason"].startswith("the process of attempt 1 was killed or crashed")


def test_service_without_a_worker_says_that_nothing_trains(client, monkeypatch):
    monkeypatch.setattr("service.api.health._SECONDS_FOR_A_WORKER", 0.1)
    answer = client.get("/health/training")
    assert answer.status_code == 503
    assert answer.json()["error"].startswith("No worker lives on this machine: ")
