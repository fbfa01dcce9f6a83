"""What a dispatcher does about the attempts that it has started."""

import errno
import os
import time
from pathlib import Path

import pytest

from service.job_process import dispatcher as dispatcher_module
from service.job_process.cleanup import remove_leftovers
from service.job_process.dispatcher import Dispatcher
from service.job_process.launcher import LocalLauncher
from service.job_process.publish import staging_directory
from service.shared import job_events as events
from service.shared.database.tables import Job
from service.shared.files import JobFiles
from service.shared.job_state import JobState
from service.shared.queue import Lease, Queue
from service.shared.settings import Settings
from tests.service.queued import add_table, job, leased, registered, states, submitted
from tests.waiting import wait_until

# The tests of the queue run on each kind of database.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Started:
    """A launcher whose processes exist in name only."""

    def __init__(self) -> None:
        self.leases: list[Lease] = []
        self.dead: list[tuple[Lease, str]] = []
        self.asked: list[tuple[str, Lease]] = []
        self.bytes = self.prepared = 0
        self.age = 0.0
        self.full = False
        # Attempts that a dispatcher before this one started.
        self.elsewhere: list[Lease] = []

    def start(self, lease: Lease) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "log.txt")
        self.leases.append(lease)

    def has(self, lease: Lease) -> bool:
        return lease in self.elsewhere

    def take_over(self, lease: Lease) -> None:
        self.leases.append(lease)

    def prepare(self) -> None:
        self.prepared += 1

    def running(self) -> list[Lease]:
        return list(self.leases)

    def ended(self) -> list[tuple[Lease, str]]:
        dead, self.dead = self.dead, []
        return dead

    def seconds(self, lease: Lease) -> float:
        return self.age

    def memory(self, lease: Lease) -> int:
        return self.bytes

    def terminate(self, lease: Lease) -> None:
        self.asked.append(("terminate", lease))

    def kill(self, lease: Lease) -> None:
        self.asked.append(("kill", lease))
        self.end(lease, "signal SIGKILL")

    def close(self, seconds: float) -> None:
        for lease in self.running():
            self.end(lease, "signal SIGTERM")

    def end(self, lease: Lease, how: str) -> None:
        if lease in self.leases:
            self.leases.remove(lease)
            self.dead.append((lease, how))


@pytest.fixture
def launcher() -> Started:
    return Started()


@pytest.fixture
def dispatcher(queue: Queue, launcher: Started) -> Dispatcher:
    return Dispatcher(queue, launcher)


@pytest.fixture
def job_id(queue: Queue, dispatcher: Dispatcher) -> str:
    """A job whose first attempt the dispatcher has started."""
    (job_id,) = submitted(queue)
    dispatcher.step()
    return job_id


def test_it_starts_as_many_jobs_as_it_has_slots(
    queue: Queue, dispatcher: Dispatcher, launcher: Started
) -> None:
    jobs = submitted(queue, 3)
    dispatcher.step()
    assert launcher.leases == [Lease(job_id, 1) for job_id in jobs[:2]]
    launcher.end(launcher.leases[0], "exit code 1")
    dispatcher.step()
    assert job(queue, jobs[0]).deaths == 1
    assert launcher.leases == [Lease(jobs[1], 1), Lease(jobs[2], 1)]


def test_trainer_is_started_ahead_when_a_table_is_uploaded(
    queue: Queue, dispatcher: Dispatcher, launcher: Started
) -> None:
    add_table(queue, sha256="of last week")
    dispatcher.step()
    dispatcher.step()
    assert launcher.prepared == 0
    add_table(queue, sha256="new", created_at=time.time())
    dispatcher.step()
    dispatcher.step()
    assert launcher.prepared == 1


def test_prepared_trainer_takes_the_next_job(queue: Queue) -> None:
    settings = queue.settings
    launcher = LocalLauncher(settings, "tests.service.job_process.stand_in_trainer")
    launcher.prepare()
    launcher.prepare()
    (process,) = launcher._trainers
    assert launcher.running() == []
    (id,) = submitted(queue)
    lease = leased(queue, registered(queue))
    launcher.start(lease)
    assert [process] == launcher._trainers
    assert launcher.running() == [lease]
    wait_until(lambda: job(queue, id).state == JobState.SUCCEEDED)
    assert (settings.data_dir / "prepared").exists()
    wait_until(lambda: launcher.running() == [])
    launcher.close(10.0)


def test_job_whose_process_cannot_start_waits_with_the_reason(
    queue: Queue,
    dispatcher: Dispatcher,
    launcher: Started,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (job_id,) = submitted(queue)
    launcher.full = True
    with pytest.raises(OSError, match="No space left"):
        dispatcher.step()
    dispatcher.step()
    assert states(queue, job_id) == ["queued", "running", "queued"]
    with queue.database.reading() as session:
        told = events.after(session, job_id, 0)[-1].data
    assert told["reason"] == (
        "Its process could not be started: log.txt: No space left on device"
    )
    launcher.full, later = False, time.monotonic() + 11.0
    monkeypatch.setattr(dispatcher_module.time, "monotonic", lambda: later)
    dispatcher.step()
    assert launcher.leases == [Lease(job_id, 2)]


def test_job_over_its_memory_limit_is_ended_with_the_reason(
    queue: Queue, dispatcher: Dispatcher, launcher: Started
) -> None:
    (job_id,) = submitted(queue)
    launcher.bytes = queue.settings.job_memory_bytes + 1
    for attempt in (1, 2, 3):
        with queue.database.writing() as session:
            session.get_one(Job, job_id).not_before = None
        dispatcher.step()
        assert launcher.leases == [Lease(job_id, attempt)]
        dispatcher.step()
        dispatcher.step()
    failed = job(queue, job_id)
    assert failed.state == "failed"
    assert "died 3 times" in (failed.error or "")
    assert "out of memory" in (failed.error or "")
    assert "TFBBB_JOB_MEMORY_BYTES" in (failed.error or "")


def renewed(queue: Queue, dispatcher: Dispatcher, job_id: str) -> bool:
    """Whether the next step of the dispatcher renews the lease."""
    before = job(queue, job_id).lease_expires_at
    dispatcher._renewed_at = float("-inf")
    dispatcher.step()
    return job(queue, job_id).lease_expires_at != before


def test_lease_is_renewed_until_its_trainer_renews_it(
    queue: Queue, dispatcher: Dispatcher, job_id: str
) -> None:
    assert renewed(queue, dispatcher, job_id)
    assert renewed(queue, dispatcher, job_id)
    queue.heartbeat(Lease(job_id, 1))
    assert not renewed(queue, dispatcher, job_id)


def test_trainer_that_never_starts_is_killed_with_the_reason(
    queue: Queue, dispatcher: Dispatcher, launcher: Started, job_id: str
) -> None:
    launcher.age = dispatcher_module._SECONDS_TO_START + 1
    for _ in range(2):  # It is killed, and recorded.
        dispatcher.step()
    assert launcher.asked[-1] == ("kill", Lease(job_id, 1))
    with queue.database.reading() as session:
        told = events.after(session, job_id, 0)[-1].data
    assert "did not start within 300 s" in told["reason"]


def test_a_job_that_takes_too_long_has_failed(
    queue: Queue, dispatcher: Dispatcher, launcher: Started, job_id: str
) -> None:
    launcher.age = queue.settings.job_seconds + 1
    dispatcher.step()
    assert "TFBBB_JOB_SECONDS" in (job(queue, job_id).error or "")
    assert launcher.asked == [("kill", Lease(job_id, 1))]
    dispatcher.step()
    assert job(queue, job_id).state == "failed"


def test_a_cancelled_job_is_given_time_then_terminated_then_killed(
    queue: Queue,
    dispatcher: Dispatcher,
    launcher: Started,
    monkeypatch: pytest.MonkeyPatch,
    job_id: str,
) -> None:
    with queue.database.writing() as session:
        queue.cancel(session, session.get_one(Job, job_id))
    now = time.monotonic()
    for seconds in (0.0, 9.0, 11.0, 21.0):
        later = now + seconds
        monkeypatch.setattr(
            dispatcher_module.time, "monotonic", lambda later=later: later
        )
        dispatcher.step()
    assert [verb for verb, _ in launcher.asked] == ["terminate", "kill"]
    dispatcher.step()
    assert job(queue, job_id).state == "cancelled"


def test_tidying_removes_what_is_over_and_nothing_else(queue: Queue) -> None:
    ended, running = submitted(queue, 2)
    dispatcher = registered(queue)
    over, active = leased(queue, dispatcher), leased(queue, dispatcher)
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


def test_death_of_a_local_trainer_tells_the_last_line_of_its_attempt(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first attempt writes a line and dies, the second says nothing.
    (tmp_path / "dies.py").write_text(
        "import sys\nif sys.argv[3] == '1': sys.exit('No space left\\0')\nsys.exit(2)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    told = []
    for module, attempt in (("dies", 1), ("dies", 2), ("no_such_module", 3)):
        launcher = LocalLauncher(settings, module)
        launcher.start(Lease("f" * 24, attempt))
        while not (ended := launcher.ended()):
            time.sleep(0.01)
        told.append(ended[0][1])
    assert told[0] == "exit code 1; the last line of its log: No space left\ufffd"
    assert told[1] == "exit code 2"
    assert told[2].endswith("No module named no_such_module")
