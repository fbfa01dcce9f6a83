"""What a worker does with its jobs, and between them."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.job_process import worker as worker_module
from service.job_process.process import Process
from service.job_process.publish import staging_directory
from service.job_process.upkeep import remove_leftovers
from service.job_process.worker import Worker
from service.shared.files import JobFiles
from service.shared.queue import Lease
from tests.service.job_process.stand_in_worker import CountingTrainer
from tests.service.queued import (
    add_table,
    cancel,
    events,
    job,
    leased,
    states,
    submitted,
)
from tests.waiting import set_clock, wait_until


class StartedAnewError(Exception):
    """The process would begin again."""


class StandInProcess(Process):
    """A process that writes to the output of the tests, and raises at its end."""

    def write_to(self, log):
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.touch()

    def start_anew(self):
        raise StartedAnewError


class Preparing(CountingTrainer):
    """A trainer that tells when it was prepared."""

    prepared: list[Callable[[], bool]] = []  # noqa: RUF012 - each test empties it

    def prepare(self, should_stop):
        self.prepared.append(should_stop)


@pytest.fixture
def stopping():
    return threading.Event()


@pytest.fixture
def worker(queue, stopping, monkeypatch):
    monkeypatch.setattr(worker_module, "_SECONDS_FOR_OTHERS", 0.0)
    Preparing.prepared.clear()
    trainer = Preparing(queue.settings)
    return Worker(queue, trainer, StandInProcess(), stopping)


def test_worker_runs_one_job_after_the_other(queue, worker):
    jobs = submitted(queue, 2)
    assert [worker.step(), worker.step(), worker.step()] == [True, True, False]
    assert [job(queue, job_id).version for job_id in jobs] == [1, 2]


def test_job_that_fails_leaves_nothing_in_the_process(queue, worker):
    (job_id,) = submitted(queue, spec={"steps": "many"})
    with pytest.raises(StartedAnewError):
        worker.step()
    assert job(queue, job_id).state == "failed"


def test_upload_prepares_an_idle_worker_for_some_minutes(queue, worker, monkeypatch):
    add_table(queue, sha256="of last week")
    for _ in range(2):
        worker.step()
    assert worker._trainer.prepared == []
    add_table(queue, sha256="new", created_at=time.time())
    for _ in range(2):
        worker.step()
    (should_stop,) = Preparing.prepared
    assert not should_stop()
    submitted(queue, not_before=time.time() + 1e6)
    assert not should_stop()
    submitted(queue)
    assert should_stop()
    worker.step()
    later = time.monotonic() + worker_module._WARM_SECONDS + 1
    set_clock(monkeypatch, worker_module, monotonic=lambda: later)
    with pytest.raises(StartedAnewError):
        worker.step()


def test_worker_that_does_not_prepare_leaves_a_job_to_others_first(
    queue, stopping, monkeypatch
):
    Preparing.prepared.clear()
    trainer = Preparing(queue.settings)
    cold = Worker(queue, trainer, StandInProcess(), stopping, prepares=False)
    cold.step()
    add_table(queue, created_at=time.time())
    cold.step()
    assert Preparing.prepared == []
    (job_id,) = submitted(queue)

    def wait(seconds):
        # Meanwhile a worker that has the libraries takes the job.
        assert queue.lease_job(job_id) is not None
        return False

    monkeypatch.setattr(stopping, "wait", wait)
    assert not cold.step()


def test_job_whose_log_cannot_be_opened_waits_with_the_reason(
    queue, worker, monkeypatch
):
    monkeypatch.setattr(worker_module, "_SECONDS_TO_RECOVER", 0.0)
    (job_id,) = submitted(queue)
    directory = JobFiles(queue.settings, job_id).directory
    directory.parent.mkdir(parents=True)
    directory.write_text("not a directory")
    with pytest.raises(OSError, match="File exists"):
        worker.step()
    assert states(queue, job_id) == ["queued", "running", "queued"]
    told = events(queue, job_id)[-1].data
    assert told["reason"].startswith("Its log could not be opened: ")


@pytest.mark.parametrize("state", ["queued", "cancelled"])
def test_a_running_job_ends_with_its_worker_or_when_it_is_cancelled(
    queue, worker, stopping, state
):
    (job_id,) = submitted(queue, spec={"steps": 10**6})

    def stop():
        wait_until(lambda: job(queue, job_id).progress.get("saved_step"))
        if state == "cancelled":
            cancel(queue, job_id)
            wait_until(lambda: job(queue, job_id).state == state)
        stopping.set()

    with ThreadPoolExecutor(1) as executor:
        executor.submit(stop)
        worker.run()
    stopped = job(queue, job_id)
    assert (stopped.state, stopped.deaths) == (state, 0)
    assert stopped.progress["saved_step"] > 0


def run_alone(settings, job_id):
    return subprocess.run(
        [
            *(sys.executable, "-m", "tests.service.job_process.stand_in_worker"),
            *("--job", job_id),
        ],
        env=os.environ | settings.environment(),
        capture_output=True,
        text=True,
    )


def test_one_job_is_run_on_demand_and_its_log_printed(queue):
    (job_id,) = submitted(queue)
    done = run_alone(queue.settings, job_id)
    assert done.returncode == 0, done.stderr
    assert "published model, version 1" in done.stderr
    again = run_alone(queue.settings, job_id)
    assert again.returncode == 1
    assert f"There is no queued job {job_id}." in again.stderr


def test_job_over_its_memory_limit_ends_its_process(queue):
    limited = queue.settings.model_copy(update={"job_memory_bytes": 2**20})
    (job_id,) = submitted(queue, spec={"steps": 10**6})
    assert run_alone(limited, job_id).returncode == 1
    ended = job(queue, job_id)
    assert (ended.state, ended.deaths) == ("queued", 1)
    told = events(queue, job_id)[-1].data
    assert "out of memory" in told["reason"]
    assert "TFBBB_JOB_MEMORY_BYTES" in told["reason"]


def test_tidying_removes_what_is_over_and_nothing_else(queue):
    ended, running = submitted(queue, 2)
    over, active = leased(queue), leased(queue)
    queue.fail(over, "of no use")
    models = queue.settings.models
    exporting = "{0.parent}/.staging-{0.name}-0123abcd"
    kept = [
        staging_directory(models, active),
        Path(exporting.format(staging_directory(models, active))),
        models / ".staging" / "of-a-user",
        models / "model" / "1",
        JobFiles(queue.settings, running).scratch,
    ]
    gone = [
        staging_directory(models, over),
        Path(exporting.format(staging_directory(models, over))),
        staging_directory(models, Lease(running, 7)),
        staging_directory(models, Lease("f" * 24, 1)),
        JobFiles(queue.settings, ended).scratch,
        JobFiles(queue.settings, "f" * 24).scratch,
    ]
    for directory in (*kept, *gone):
        directory.mkdir(parents=True)
    log = JobFiles(queue.settings, ended).log
    log.write_text("what happened\n")
    remove_leftovers(queue)
    assert [path for path in (*kept, *gone) if path.exists()] == kept
    assert log.exists()
