import threading
from functools import partial

from sqlalchemy.exc import OperationalError

from service.job_process import heartbeat as heartbeat_module
from service.job_process.attempt import describe_failure
from service.job_process.heartbeat import Heartbeat
from service.shared.database.tables import Job
from service.shared.queue import Lease
from tests.service.queued import cancel, epochs, job, leased, let_expire, submitted
from tests.waiting import set_clock
from tfbbb.training.job_clock import Progress


def test_heartbeats_go_on_after_one_that_failed(queue, lease, monkeypatch):
    beats, enough = [], threading.Event()

    def fail_once(of, *told):
        beats.append(of)
        if len(beats) == 1:
            raise RuntimeError("nobody has thought of this")
        enough.set()
        return False

    monkeypatch.setattr(heartbeat_module, "_SECONDS", 0.01)
    monkeypatch.setattr(queue, "heartbeat", fail_once)
    with Heartbeat(queue, lease, threading.Event()):
        assert enough.wait(60)


def test_a_failure_is_described_without_what_databases_refuse():
    assert "\0" not in describe_failure(ValueError("no such category: a\0b"))


def test_progress_is_kept_while_the_database_does_not_answer(queue, lease, monkeypatch):
    heartbeat = Heartbeat(queue, lease, threading.Event())

    def fail(*arguments):
        raise OperationalError("update", {}, Exception("it is restarted"))

    for epoch in (1, 2):
        figures = {"nll": 1.0 / epoch}
        heartbeat.report(Progress(epoch, 3, step=5 * epoch, steps=15, figures=figures))
        with monkeypatch.context() as patch:
            patch.setattr(queue, "heartbeat", fail)
            heartbeat.send()
    heartbeat.send()
    assert job(queue, lease.job_id).progress["step"] == 10
    assert epochs(queue, lease.job_id) == [1, 2]


def test_every_heartbeat_renews_the_lease(queue, lease):
    with queue.database.writing() as session:
        session.get_one(Job, lease.job_id).lease_expires_at = 0.0
    Heartbeat(queue, lease, threading.Event()).send()
    assert job(queue, lease.job_id).lease_expires_at > 0.0


def test_job_over_a_limit_ends_its_process_with_the_reason(queue, monkeypatch):
    now, ends, heartbeats = [0.0], [], {}
    set_clock(monkeypatch, heartbeat_module, monotonic=lambda: now[0])
    for name in ("too long", "cancelled", "stale"):
        submitted(queue)
        lease = leased(queue)
        end = partial(ends.append, name)
        beat = Heartbeat(queue, lease, threading.Event(), end=end)
        heartbeats[name] = beat, lease.job_id
    beat, job_id = heartbeats["too long"]
    now[0] = queue.settings.job_seconds + 1
    beat.enforce_limits()
    assert job(queue, job_id).state == "failed"
    assert job(queue, job_id).error == (
        "It took longer than 86400 s (TFBBB_JOB_SECONDS)"
    )
    beat, job_id = heartbeats["cancelled"]
    cancel(queue, job_id)
    beat.cancelled = True
    for seconds, ended in ((0.0, False), (20.0, False), (10.0, True)):
        now[0] += seconds
        beat.enforce_limits()
        assert ("cancelled" in ends) is ended
    assert job(queue, job_id).state == "cancelled"
    beat, job_id = heartbeats["stale"]
    let_expire(queue, Lease(job_id, 1))
    leased(queue)
    beat.enforce_limits()
    assert ends == ["too long", "cancelled", "stale"]
    # Nothing is recorded of an attempt that has ended.
    assert (job(queue, job_id).state, job(queue, job_id).attempt) == ("running", 2)
