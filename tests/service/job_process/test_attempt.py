"""What becomes of a job whose training ends in one way or another."""

import errno
import os
import threading
import time
from functools import partial

import pytest
from sqlalchemy.exc import InternalError, OperationalError

from service.job_process import attempt as run
from service.job_process.attempt import Attempt
from service.shared.database.tables import Label
from service.shared.files import JobFiles
from service.shared.store import StoreOutageError
from service.shared.versions import LATEST
from tests.service.job_process.stand_in_worker import export
from tests.service.queued import job, leased, let_expire, states, submitted
from tfbbb.tables import TableError
from tfbbb.training.job_clock import Progress

REPORT = Progress(epoch=1, epochs=2, step=5, steps=10, figures={"nll": 0.5})


class Trainer:
    """Trains by doing what it is told to."""

    def __init__(self, work=lambda: None):
        self._work = work
        self.should_stop = lambda: False
        self.serving = None

    def prepare(self, should_stop):
        """Needs no preparation."""

    def train(self, job, serving, report, should_stop, clock):
        self.serving, self.should_stop = serving, should_stop
        report(REPORT)
        self._work()
        return partial(export, job.id, "trained")


def attempt(queue, lease, trainer):
    JobFiles(queue.settings, lease.job_id).scratch.mkdir(parents=True)
    return Attempt(queue, lease, threading.Event(), trainer, pytest.fail)


def raising(error):
    def fail():
        raise error

    return fail


def test_an_attempt_trains_and_publishes(queue, lease):
    assert attempt(queue, lease, Trainer()).run()
    assert states(queue, lease.job_id)[-2:] == ["exporting", "succeeded"]
    assert job(queue, lease.job_id).progress["figures"] == {"nll": 0.5}
    assert not JobFiles(queue.settings, lease.job_id).scratch.exists()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TableError("Column 'x' has no values."), "Column 'x' has no values."),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), "x: No such file"),
        (RuntimeError("of\nTensorFlow"), "RuntimeError: of TensorFlow; the log has"),
    ],
)
def test_impossible_job_fails_with_the_reason(queue, lease, error, reason):
    as_new = attempt(queue, lease, Trainer(raising(error))).run()
    assert not as_new, "who knows what it left in the process"
    failed = job(queue, lease.job_id)
    assert failed.state == "failed"
    assert reason in (failed.error or "")
    assert not JobFiles(queue.settings, lease.job_id).scratch.exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_job_outlives_a_fault_of_its_machine(queue, lease, number):
    error = OSError(number, os.strerror(number), "checkpoint")
    assert attempt(queue, lease, Trainer(raising(error))).run()
    waiting = job(queue, lease.job_id)
    assert (waiting.state, waiting.deaths) == ("queued", 1)
    assert waiting.not_before is not None
    again = queue.lease_job(lease.job_id)
    assert again is not None
    assert Attempt(queue, again, threading.Event(), Trainer(), pytest.fail).run()
    assert job(queue, lease.job_id).state == "succeeded"


def test_a_trainer_knows_the_version_that_is_latest(queue):
    known = []
    for _ in range(3):
        submitted(queue)
        trainer = Trainer()
        assert attempt(queue, leased(queue), trainer).run()
        known.append(trainer.serving)
        with queue.database.writing() as session:
            session.merge(
                Label(name="model", label=LATEST, number=1, moved_at=time.time())
            )
    assert known == [None, 1, 1]


def test_a_ghost_writes_nothing(queue, lease):
    def lose_the_lease():
        let_expire(queue, lease)
        leased(queue)
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            told.append(trainer.should_stop())
            time.sleep(0.01)
        pytest.fail("it was not told")

    told = []
    trainer = Trainer(lose_the_lease)
    assert not attempt(queue, lease, trainer).run()
    # To stop in peace would be to save its state over that of the next attempt.
    assert not any(told)
    assert job(queue, lease.job_id).attempt == 2
    assert job(queue, lease.job_id).state == "running"
    assert not (queue.settings.models / "model").exists()


def test_publishing_waits_for_the_database_and_the_store(queue, lease, monkeypatch):
    publish = run.publish
    standby = ("update", {}, Exception("there is a standby"))
    failures = [
        *(OperationalError(*standby), InternalError(*standby)),
        StoreOutageError("It could not be written: no route", "s3://bucket"),
    ]

    def publish_later(*arguments):
        if failures:
            raise failures.pop()
        return publish(*arguments)

    monkeypatch.setattr(run, "publish", publish_later)
    waiting = attempt(queue, lease, Trainer())
    monkeypatch.setattr(waiting.stopping, "wait", lambda seconds: False)
    assert waiting.run()
    assert failures == []
    assert job(queue, lease.job_id).state == "succeeded"
