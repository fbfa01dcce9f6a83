"""What a dispatcher does about the attempts that it has started."""

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from service.job_process import dispatcher as dispatcher_module
from service.job_process.cleanup import remove_leftovers
from service.job_process.dispatcher import Dispatcher
from service.job_process.launcher import LocalLauncher
from service.job_process.publish import staging_directory
from service.shared import job_events as events
from service.shared.database import Database, DatabaseFileError, upgrade
from service.shared.database.tables import Dataset, DispatcherRegistration, Job
from service.shared.database.upgrade import copy_sqlite
from service.shared.files import JobFiles, last_line
from service.shared.job_state import ENDED, JobState
from service.shared.queue import Lease, Queue
from service.shared.settings import Settings
from tests.service.queued import job, leased, registered, states, submitted


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


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


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
    def upload(sha256: str) -> None:
        row = Dataset(
            name="table",
            sha256=sha256,
            format="csv",
            num_bytes=1,
            num_rows=1,
            columns=[],
            problems=[],
            created_at=time.time(),
        )
        with queue.database.writing() as session:
            session.add(row)

    upload("of last week")
    dispatcher.step()
    dispatcher.step()
    assert launcher.prepared == 0
    upload("new")
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
    wait_for(lambda: job(queue, id).state == JobState.SUCCEEDED)
    assert (settings.data_dir / "prepared").exists()
    wait_for(lambda: launcher.running() == [])
    launcher.close(10.0)


def test_no_job_is_claimed_once_the_database_file_is_another(
    tmp_path: Path, launcher: Started
) -> None:
    settings = Settings(data_dir=tmp_path, models=tmp_path / "models")
    queue = Queue(Database(settings.effective_database_url), settings)
    upgrade(queue.database, tmp_path)
    dispatcher = Dispatcher(queue, launcher)
    dispatcher.step()
    (job_id,) = submitted(queue)
    assert queue.database.path is not None
    copy_sqlite(queue.database.path, tmp_path / "copy.sqlite3")
    (tmp_path / "copy.sqlite3").replace(queue.database.path)
    with pytest.raises(DatabaseFileError, match="was replaced by another file"):
        dispatcher.step()
    assert launcher.leases == []
    assert states(queue, job_id) == ["queued"]
    queue.database.close()


def test_process_that_reported_its_result_did_not_die(
    queue: Queue, dispatcher: Dispatcher, launcher: Started, job_id: str
) -> None:
    queue.fail(Lease(job_id, 1), "of no use")
    launcher.end(Lease(job_id, 1), "exit code 0")
    dispatcher.step()
    assert (job(queue, job_id).error, job(queue, job_id).deaths) == ("of no use", 0)


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


def test_file_that_cannot_be_removed_blocks_no_job(
    queue: Queue,
    dispatcher: Dispatcher,
    launcher: Started,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(queue: Queue) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "scratch")

    monkeypatch.setattr(dispatcher_module, "remove_leftovers", fail)
    submitted(queue)
    with pytest.raises(PermissionError):
        dispatcher.step()
    dispatcher.step()
    assert len(launcher.leases) == 1


def test_a_fault_that_lasts_is_logged_once(
    dispatcher: Dispatcher,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stop = threading.Event()
    faults = ["lost", "lost", None, "lost", "locked"]

    def step() -> None:
        fault = faults.pop(0)
        if not faults:
            stop.set()
        if fault is not None:
            raise OperationalError("select", {}, Exception(fault))

    monkeypatch.setattr(dispatcher, "step", step)
    monkeypatch.setattr(dispatcher_module, "_POLL_SECONDS", 0.0)
    dispatcher.run(stop)
    logged = [r.message for r in caplog.records if "does not answer" in r.message]
    assert [message.rsplit(" ", 1)[1] for message in logged] == [
        "lost",
        "lost",
        "locked",
    ]


def test_a_death_is_told_of_when_the_database_is_back(
    queue: Queue,
    dispatcher: Dispatcher,
    launcher: Started,
    monkeypatch: pytest.MonkeyPatch,
    job_id: str,
) -> None:
    launcher.end(Lease(job_id, 1), "signal SIGSEGV")

    def fail(lease: Lease, reason: str) -> None:
        raise OperationalError("select", {}, Exception("connection lost"))

    with monkeypatch.context() as patch:
        patch.setattr(queue, "record_death", fail)
        with pytest.raises(OperationalError):
            dispatcher.step()
    dispatcher.step()
    assert job(queue, job_id).deaths == 1


def test_dispatcher_taken_for_dead_starts_nothing_until_it_returns(
    queue: Queue, dispatcher: Dispatcher, launcher: Started
) -> None:
    dispatcher.step()
    with queue.database.writing() as session:
        session.delete(session.get_one(DispatcherRegistration, dispatcher.id))
    submitted(queue)
    dispatcher.step()
    assert launcher.leases == []


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
    for attempt in (1, 2, 3):
        with queue.database.writing() as session:
            session.get_one(Job, job_id).not_before = None
        for _ in range(3):  # It is started, killed, and recorded.
            dispatcher.step()
        assert launcher.asked[-1] == ("kill", Lease(job_id, attempt))
    failed = job(queue, job_id)
    assert failed.state == "failed"
    assert "died 3 times" in (failed.error or "")
    assert "did not start within 300 s" in (failed.error or "")


def test_trainer_that_started_is_not_killed_for_its_start(
    queue: Queue, dispatcher: Dispatcher, launcher: Started, job_id: str
) -> None:
    queue.heartbeat(Lease(job_id, 1))
    launcher.age = dispatcher_module._SECONDS_TO_START + 1
    dispatcher.step()
    assert launcher.asked == []


def test_job_succeeds_whose_trainer_starts_slower_than_its_lease(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_SECONDS_TO_START", "3")
    settings = queue.settings.model_copy(update={"lease_seconds": 1.0})
    short = Queue(queue.database, settings)
    dispatcher = Dispatcher(
        short, LocalLauncher(settings, "tests.service.job_process.stand_in_trainer")
    )
    (job_id,) = submitted(queue)
    stop = threading.Event()
    running = threading.Thread(target=dispatcher.run, args=(stop,))
    running.start()
    try:
        while job(queue, job_id).state not in ENDED:
            assert job(queue, job_id).attempt <= 1
            time.sleep(0.1)
    finally:
        stop.set()
        running.join()
    assert states(queue, job_id) == ["queued", "running", "exporting", "succeeded"]


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


def test_an_attempt_whose_lease_has_ended_is_stopped(
    queue: Queue,
    dispatcher: Dispatcher,
    launcher: Started,
    monkeypatch: pytest.MonkeyPatch,
    job_id: str,
) -> None:
    queue.fail(Lease(job_id, 1), "given up by another hand")
    dispatcher.step()
    now = time.monotonic()
    monkeypatch.setattr(dispatcher_module.time, "monotonic", lambda: now + 30.0)
    dispatcher.step()
    assert launcher.asked == [("kill", Lease(job_id, 1))]


def test_job_that_ends_at_its_time_limit_keeps_its_error(
    queue: Queue,
    dispatcher: Dispatcher,
    launcher: Started,
    monkeypatch: pytest.MonkeyPatch,
    job_id: str,
) -> None:
    launcher.age = queue.settings.job_seconds + 1
    # What the dispatcher sees is true no more when it writes.
    monkeypatch.setattr(queue, "must_stop", lambda lease: False)
    queue.fail(Lease(job_id, 1), "its own reason")
    dispatcher.step()
    assert job(queue, job_id).error == "its own reason"
    assert launcher.asked == []


def test_dispatcher_that_stops_requeues_its_jobs_and_deregisters(
    queue: Queue, dispatcher: Dispatcher
) -> None:
    jobs = submitted(queue, 2)
    dispatcher.step()
    with queue.database.reading() as session:
        assert session.get(DispatcherRegistration, dispatcher.id) is not None
    stop = threading.Event()
    stop.set()
    dispatcher.run(stop)
    for job_id in jobs:
        assert (job(queue, job_id).state, job(queue, job_id).deaths) == ("queued", 0)
    with queue.database.reading() as session:
        assert session.get(DispatcherRegistration, dispatcher.id) is None


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


def test_retried_job_keeps_its_new_scratch_directory(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job_id,) = submitted(queue)
    queue.fail(leased(queue, registered(queue)), "of no use")
    files, remove = JobFiles(queue.settings, job_id), shutil.rmtree
    files.scratch.mkdir(parents=True)

    def remove_late(directory: Path) -> None:
        with queue.database.writing() as session:
            queue.retry(session, session.get_one(Job, job_id))
        files.scratch.mkdir(exist_ok=True)
        remove(directory)

    monkeypatch.setattr(shutil, "rmtree", remove_late)
    remove_leftovers(queue)
    assert list(files.directory.iterdir()) == [files.scratch]


def test_what_two_remove_at_once_is_gone(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, remove = JobFiles(queue.settings, "f" * 24), shutil.rmtree
    files.scratch.mkdir(parents=True)

    def meet_another(directory: Path) -> None:
        monkeypatch.setattr(shutil, "rmtree", remove)
        raise FileNotFoundError

    monkeypatch.setattr(shutil, "rmtree", meet_another)
    files.remove()
    assert not files.directory.exists()


def test_the_tail_of_a_log_starts_with_a_line(queue: Queue, tmp_path: Path) -> None:
    files = JobFiles(queue.settings, "f" * 24)
    assert files.log_tail(100) == ""
    files.directory.mkdir(parents=True)
    files.log.write_bytes(b"first line\nsecond \xff\nthird\n")
    assert files.log_tail(1000) == "first line\nsecond \ufffd\nthird\n"
    assert files.log_tail(10) == "third\n"
    assert files.log_tail(6) == "third\n"


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


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", None),
        ("one\ntwo  \n\n", "two"),
        ('one\n{"level": "ERROR", "message": "failed"}\n', "failed"),
        (
            '{"message": "failed", "exception": "Traceback\\nKeyError: 1\\n"}',
            "KeyError: 1",
        ),
        ("{1}", "{1}"),
    ],
)
def test_last_line_of_a_log_is_its_message(log: str, line: str | None) -> None:
    assert last_line(log) == line
