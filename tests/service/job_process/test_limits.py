"""The end of a process whose job is over its limits."""

import pytest

from service.job_process import limits as limits_module
from service.job_process.limits import Limits
from service.shared.database.tables import Job
from service.shared.queue import Lease, Queue
from tests.service.queued import job, leased, let_expire, submitted

# The tests of the queue run on each kind of database.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def lease(queue: Queue) -> Lease:
    submitted(queue)
    return leased(queue)


@pytest.fixture
def ends() -> list[str]:
    """The ends of the process."""
    return []


@pytest.fixture
def limits(queue: Queue, lease: Lease, ends: list[str]) -> Limits:
    return Limits(queue, lease, lambda: ends.append("end"))


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    later = limits_module.time.monotonic() + seconds
    monkeypatch.setattr(limits_module.time, "monotonic", lambda: later)


def use_memory(monkeypatch: pytest.MonkeyPatch, num_bytes: int) -> None:
    monkeypatch.setattr(limits_module, "_resident_bytes", lambda: num_bytes)


def test_job_that_takes_too_long_has_failed(
    queue: Queue,
    lease: Lease,
    limits: Limits,
    ends: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pass_time(monkeypatch, queue.settings.job_seconds + 1)
    limits.enforce(must_stop=False)
    assert ends == ["end"]
    failed = job(queue, lease.job_id)
    assert failed.state == "failed"
    assert failed.error == "It took longer than 86400 s (TFBBB_JOB_SECONDS)"


def test_cancelled_job_has_time_to_stop_before_its_process_is_ended(
    queue: Queue,
    lease: Lease,
    limits: Limits,
    ends: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with queue.database.writing() as session:
        queue.cancel(session, session.get_one(Job, lease.job_id))
    limits.enforce(must_stop=True)
    pass_time(monkeypatch, 20.0)
    limits.enforce(must_stop=True)
    assert ends == []
    pass_time(monkeypatch, 10.0)
    limits.enforce(must_stop=True)
    assert ends == ["end"]
    assert job(queue, lease.job_id).state == "cancelled"


def test_process_of_a_stale_attempt_ends_without_a_record(
    queue: Queue,
    lease: Lease,
    limits: Limits,
    ends: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    let_expire(queue, lease)
    leased(queue)
    use_memory(monkeypatch, queue.settings.job_memory_bytes + 1)
    limits.enforce(must_stop=False)
    assert ends == ["end"]
    running = job(queue, lease.job_id)
    assert (running.state, running.attempt) == ("running", 2)
