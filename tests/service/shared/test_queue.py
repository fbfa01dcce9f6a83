import time

import pytest

from service.shared import job_events
from service.shared.database.tables import Job, Key
from service.shared.files import JobFiles
from service.shared.queue import Lease, Queue, StaleAttemptError
from tests.service.queued import (
    epochs,
    events,
    job,
    leased,
    let_expire,
    states,
    submitted,
)

EACH_DATABASE = True


def test_a_job_passes_through_its_states_to_success(queue, caplog):
    caplog.set_level("INFO", "service")
    (job_id,) = submitted(queue)
    lease = leased(queue)
    assert not queue.heartbeat(lease, {"step": 10}, [{"epoch": 1}, {"epoch": 2}])
    queue.begin_export(lease)
    with queue.database.writing() as session:
        queue.succeed(session, queue.lock_job(session, lease), version=3)
    assert states(queue, job_id) == ["queued", "running", "exporting", "succeeded"]
    assert caplog.messages[-1] == f"job {job_id} succeeded"
    done = job(queue, job_id)
    assert (done.version, done.error) == (3, None)
    assert done.progress == {"step": 10, "told_epoch": 2}
    assert done.finished_at is not None
    with queue.database.reading() as session:
        later = job_events.after(session, job_id, 4, limit=1)
    assert [event.sequence for event in later] == [5]
    assert [event.sequence for event in events(queue, job_id)] == [1, 2, 3, 4, 5, 6]
    assert epochs(queue, job_id) == [1, 2]


def test_every_write_of_a_stale_attempt_is_refused(queue):
    (job_id,) = submitted(queue)
    ghost = leased(queue)
    let_expire(queue, ghost)
    for when in ("back in the queue", "leased again", "ended"):
        if when == "leased again":
            assert leased(queue) == Lease(job_id, 2)
        if when == "ended":
            queue.fail(Lease(job_id, 2), "of no use")
        before = states(queue, job_id)
        for write in (
            lambda: queue.heartbeat(ghost, {"step": 99}, [{"epoch": 99}]),
            lambda: queue.begin_export(ghost),
            lambda: queue.fail(ghost, "ghost"),
            lambda: queue.release(ghost, "ghost"),
            lambda: queue.record_death(ghost, "ghost"),
        ):
            with pytest.raises(StaleAttemptError):
                write()
        assert not queue.is_active(ghost)
        assert states(queue, job_id) == before
        assert job(queue, job_id).progress == {}


def test_epoch_that_a_later_attempt_repeats_is_reported_once(queue):
    (job_id,) = submitted(queue)
    first = leased(queue)
    queue.heartbeat(first, {"step": 30}, [{"epoch": 1}, {"epoch": 2}, {"epoch": 3}])
    queue.release(first, "The service stopped")
    queue.heartbeat(leased(queue), {"step": 20}, [{"epoch": 2}])
    queue.heartbeat(Lease(job_id, 2), {"step": 40}, [{"epoch": 3}, {"epoch": 4}])
    assert epochs(queue, job_id) == [1, 2, 3, 4]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_times_of_a_job_are_those_of_the_database(queue, monkeypatch):
    (job_id,) = submitted(queue)
    now = time.time()
    # The clock of this machine is ten minutes fast.
    monkeypatch.setattr(time, "time", lambda: now + 600)
    lease = leased(queue)
    assert 0 < job(queue, job_id).lease_expires_at - now < 60
    queue.heartbeat(lease, {"step": 10}, [{"epoch": 1}])
    queue.begin_export(lease)
    with queue.database.writing() as session:
        queue.succeed(session, queue.lock_job(session, lease), version=1)
    done = job(queue, job_id)
    told = [event.created_at for event in events(queue, job_id)[1:]]
    for seen in (done.started_at, done.finished_at, *told):
        assert abs(seen - now) < 60


def test_job_whose_process_dies_three_times_fails_with_the_reason(queue):
    (job_id,) = submitted(queue)
    for _ in range(3):
        with queue.database.writing() as session:
            # The pause before the next try is over.
            session.get_one(Job, job_id).not_before = None
        lease = leased(queue)
        queue.heartbeat(lease, {"step": 10})
        queue.record_death(lease, "signal SIGSEGV")
    failed = job(queue, job_id)
    assert failed.state == "failed"
    assert failed.error == "3 attempts came to nothing, the last one: signal SIGSEGV"


def test_deaths_count_from_the_last_progress(queue):
    (job_id,) = submitted(queue)
    for saved_step in (0, 0, 5, 5, 5):
        with queue.database.writing() as session:
            session.get_one(Job, job_id).not_before = None
        lease = leased(queue)
        queue.heartbeat(lease, {"step": 10, "saved_step": saved_step})
        assert job(queue, job_id).state == "running"
        queue.record_death(lease, "exit code 1")
    assert job(queue, job_id).state == "failed"


def test_ends_of_the_service_do_not_count_as_deaths(queue):
    (job_id,) = submitted(queue)
    for _ in range(5):
        queue.release(leased(queue), "The service stopped")
    assert job(queue, job_id).state == "queued"
    assert job(queue, job_id).deaths == 0
    assert job(queue, job_id).attempt == 5


def test_expired_lease_is_a_death_with_the_last_line_of_the_log(queue):
    (job_id,) = submitted(queue)
    log = JobFiles(queue.settings, job_id).log
    log.parent.mkdir(parents=True)
    log.write_text('attempt 1\n{"exception": "Traceback\\nNo space left\\u0000"}\n')
    let_expire(queue, leased(queue))
    assert job(queue, job_id).deaths == 1
    told = events(queue, job_id)[-1].data
    assert told["reason"] == (
        "the process of attempt 1 sent no heartbeat for 5 s; the last line of its log: "
        "No space left\ufffd"
    )


def test_next_attempts_are_in_the_order_of_leases(queue):
    old, young = submitted(queue, 2)
    (urgent,) = submitted(queue, priority=1)
    order = [Lease(job_id, 1) for job_id in (urgent, old, young)]
    assert queue.next_attempts() == order
    assert [leased(queue) for _ in range(3)] == order
    assert not queue.has_work()
    assert queue.lease() is None


def test_a_key_runs_no_more_jobs_than_it_may(queue):
    given = {"secret_sha256": "0" * 64, "scopes": ["train"]}
    with queue.database.writing() as session:
        for name in ("busy", "other"):
            session.add(Key(id=name, name=name, prefix=name, created_at=1.0, **given))
    busy = submitted(queue, 60, key_id="busy", priority=1)
    (of_other,) = submitted(queue, key_id="other")
    settings = queue.settings.model_copy(update={"job_slots_per_key": 2})
    limited = Queue(queue.database, settings)
    of_busy = [Lease(job_id, 1) for job_id in busy]
    assert limited.next_attempts() == [*of_busy[:2], Lease(of_other, 1)]
    assert leased(limited) == of_busy[0]
    assert limited.next_attempts() == [of_busy[1], Lease(of_other, 1)]
    assert [leased(limited) for _ in range(2)] == [of_busy[1], Lease(of_other, 1)]
    assert not limited.has_work()
    assert limited.lease() is None
    queue.fail(of_busy[0], "of no use")
    assert limited.lease() == of_busy[2]


def test_a_job_that_died_waits_before_its_next_try(queue):
    submitted(queue)
    queue.record_death(leased(queue), "exit code 1")
    assert not queue.has_work()
    assert queue.lease() is None


@pytest.mark.parametrize("end", ["release", "died", "expire", "died the third time"])
def test_a_running_job_is_cancelled_when_its_attempt_ends(queue, end):
    (job_id,) = submitted(queue)
    lease = leased(queue)
    with queue.database.writing() as session:
        running = session.get_one(Job, job_id)
        if end == "died the third time":
            running.deaths = 2
        queue.cancel(session, running)
    assert job(queue, job_id).state == "running"
    assert queue.heartbeat(lease)
    if end == "release":
        queue.release(lease, "stopped")
    elif end == "expire":
        let_expire(queue, lease)
    else:
        queue.record_death(lease, "signal SIGKILL")
    assert job(queue, job_id).state == "cancelled"


def test_a_job_is_leased_by_hand_once(queue):
    (job_id,) = submitted(queue)
    assert queue.lease_job(job_id) == Lease(job_id, 1)
    assert queue.lease_job(job_id) is None
    assert queue.lease_job("f" * 24) is None
