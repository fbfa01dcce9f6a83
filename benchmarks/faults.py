"""What is lost when calls of the system fail, processes are killed, or the clock jumps.

    python benchmarks/faults.py

*Every call in turn*, as SQLite tests itself: while a service publishes, deletes,
uploads, submits, counts, backs up or prepares a database, the first call that changes a
file fails, then the second, and so on; each with "no space", once and from then on,
with "input/output error", and with the end of the process. *Under load*: processes of a
service that answers and trains are killed at random, its database is locked, its clock
is moved.

What was acknowledged must be there afterwards, what was not must be there wholly or not
at all, and the same work must succeed once the fault is over. It needs a C compiler.
"""

import argparse
import ctypes
import errno
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
from program import FOLDER, argument_parser
from program import run as run_benchmark
from records import RecordFile

sys.path.insert(0, str(FOLDER.parent))

from sqlalchemy import select

from service.api.datasets.store import DatasetStore
from service.api.feedback.repository import count
from service.api.preparation import prepare
from service.job_process.publish import publish
from service.predicting.scores import ScoredRows
from service.shared.backup import back_up
from service.shared.database import Database, create_tables
from service.shared.database.tables import Dataset, Feedback, Job, ModelVersion
from service.shared.files import dataset_name
from service.shared.job_state import ENDED, JobState
from service.shared.queue import Lease, Queue
from service.shared.sandbox import Inspection
from service.shared.settings import Settings
from service.shared.versions import delete_version, finish_deletions
from tests.service.queued import exporting, let_expire, staged, submitted
from tests.service.recorded import add_versions
from tests.service.running import ROW, Replica, submit
from tests.trained import copy_of_exports
from tfbbb.export.manifest import Manifest

_ROWS = 10
# The error of a call, 0 to end the process, and whether all later ones fail, too.
_ERRORS = {
    "no space": (errno.ENOSPC, False),
    "no space from then on": (errno.ENOSPC, True),
    "input/output error": (errno.EIO, False),
    "killed": (0, False),
}
_TABLE = b"x,y\n" + b"1,2\n" * 1000
_CLOCK = "TFBBB_CLOCK"
_DAY = 24 * 3600
_PATIENCE = 600.0


class LostError(Exception):
    """Something that was acknowledged is gone, or something is half there."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and reports."""
    parser = argument_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="of faults by load")
    options = parser.parse_args(arguments)
    with failing_calls():
        run_benchmark(__file__, options, measure, report)


@contextmanager
def failing_calls() -> Iterator[None]:
    """Starts this program again below the library of failing calls."""
    if _CLOCK in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory() as name:
        library, clock = Path(name) / "failing_calls.so", Path(name) / "clock"
        source = FOLDER / "failing_calls.c"
        build = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
        subprocess.run([*build, "-ldl"], check=True)
        clock.write_text("0")
        variables = {"LD_PRELOAD": str(library), _CLOCK: str(clock)}
        done = subprocess.run([sys.executable, *sys.argv], env=os.environ | variables)
    sys.exit(done.returncode)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds a record for each operation and kind of fault."""
    minutes = 0.05 if options.smoke else options.minutes
    most = 2 if options.smoke else None
    with tempfile.TemporaryDirectory(prefix="faults") as name:
        for operation in OPERATIONS:
            # Of a smoke run, "no space" and "killed".
            for kind in list(_ERRORS)[:: 1 if most is None else 3]:
                measured.measure(
                    {"during": operation.name, "fault": kind},
                    partial(each_call_in_turn, operation, kind, Path(name), most),
                )
        measured.measure(
            {"during": "load", "fault": "all"},
            partial(under_load, Path(name) / "service", minutes),
            settings={"minutes": minutes},
        )


def report(measured: RecordFile) -> str:
    """Returns a table of the faults."""
    lines = [
        "| during | fault | tried | lost | seconds to recover: median, most |",
        "|---|---|--:|--:|--:|",
    ]
    rows = []
    for record in measured.records:
        found = (
            record["faults"] if record["fault"] == "all" else {record["fault"]: record}
        )
        rows += [(record["during"], kind, figures) for kind, figures in found.items()]
    lines += [
        f"| {during} | {kind} | {figures['tried']} | {figures['lost']} | "
        f"{figures['median_seconds']:.2f}, {figures['most_seconds']:.2f} |"
        for during, kind, figures in rows
    ]
    tried, lost = (sum(x[name] for _, _, x in rows) for name in ("tried", "lost"))
    return "\n".join([*lines, "", f"{tried} faults, {lost} with a loss."])


@dataclass(frozen=True)
class Place:
    """The directories and the database of a service."""

    folder: Path

    @property
    def settings(self) -> Settings:
        return Settings(
            models=self.folder / "models",
            data_dir=self.folder / "data",
            lease_seconds=1e6,
            min_free_bytes=0,
        )

    @contextmanager
    def queue(self) -> Iterator[Queue]:
        """Opens the database; at the end, no process has it open."""
        database = Database(self.settings.effective_database_url)
        try:
            yield Queue(database, self.settings)
        finally:
            database.close()

    def check_database(self) -> None:
        """Raises `LostError` if SQLite finds its file damaged."""
        path = self.settings.data_dir / "tfbbb.sqlite3"
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("PRAGMA integrity_check").fetchall()
        check(found == [("ok",)], f"the database is damaged: {found}")


@dataclass(frozen=True)
class Operation:
    """Work that may fail at each call.

    `begin` makes what there is before it; `check` gets whether `act` was acknowledged,
    and does the work again if it must. Both return or take what `begin` has made.
    """

    name: str
    begin: Callable[[Place], Any]
    act: Callable[[Place, Any], object]
    check: Callable[[Place, Any, bool], None]


def check(condition: bool, message: str) -> None:
    """Raises `LostError` unless a condition holds."""
    if not condition:
        raise LostError(message)


def new_place(place: Place) -> None:
    """Makes the directories and an empty database."""
    place.settings.models.mkdir(parents=True)
    place.settings.data_dir.mkdir(parents=True)
    with place.queue() as queue:
        create_tables(queue.database)


def begin_publishing(place: Place) -> Lease:
    """Queues a job whose model waits to be published."""
    new_place(place)
    with place.queue() as queue:
        lease = exporting(queue)
        staged(queue, lease)
    return lease


def publish_staged(place: Place, lease: Lease) -> None:
    """Publishes the model."""
    with place.queue() as queue:
        publish(queue, lease, staging(place, lease))


def staging(place: Place, lease: Lease) -> Path:
    """Returns where the model waits."""
    return place.settings.models / ".staging" / f"{lease.job_id}.{lease.attempt}"


def check_publication(place: Place, lease: Lease, acknowledged: bool) -> None:
    """There is one version of the job, at once or after another attempt."""
    with place.queue() as queue:

        def job() -> Job:
            with queue.database.reading() as session:
                return session.get_one(Job, lease.job_id)

        if acknowledged:
            check(job().state == JobState.SUCCEEDED, "a published version is lost")
        elif job().state != JobState.SUCCEEDED:
            let_expire(queue, lease)
        if job().state != JobState.SUCCEEDED:
            again = queue.lease_job(lease.job_id)
            check(again is not None, f"the job is {job().state}")
            assert again is not None
            queue.begin_export(again)
            publish(queue, again, staged(queue, again))
        with queue.database.reading() as session:
            versions = list(session.scalars(select(ModelVersion)))
        check([v.job_id for v in versions] == [lease.job_id], "not one version")
        numbers = queue.store.numbers("model")
        check(numbers == [versions[0].number], f"the store has {numbers}")
        directory = place.settings.models / "model" / str(numbers[0])
        Manifest.read(directory).verify(directory)


def begin_with_version(place: Place) -> Lease:
    """Publishes a version."""
    lease = begin_publishing(place)
    publish_staged(place, lease)
    return lease


def delete(place: Place, lease: Lease) -> None:
    """Deletes the version."""
    with place.queue() as queue:
        delete_version(queue.database, queue.store, "model", 1)


def check_deletion(place: Place, lease: Lease, acknowledged: bool) -> None:
    """The version is whole or deleted, and can be deleted then."""
    directory = place.settings.models / "model" / "1"
    with place.queue() as queue:
        with queue.database.reading() as session:
            is_deleted = (
                session.get_one(ModelVersion, ("model", 1)).deleted_at is not None
            )
        if acknowledged:
            check(is_deleted and not directory.exists(), "a deleted version is there")
        elif not is_deleted:
            Manifest.read(directory).verify(directory)
            delete_version(queue.database, queue.store, "model", 1)
        finish_deletions(queue.database, queue.store)
        check(not directory.exists(), "the files of a deleted version stay")


def upload(place: Place, begun: object) -> None:
    """Stores a table."""
    with place.queue() as queue:
        store = DatasetStore(place.settings, queue.database, queue.store)
        file = store.begin()
        with closing(file):
            file.write(_TABLE)
            inspection = Inspection(num_rows=1000, columns=[], problems=[])
            store.add("table", file, "csv", inspection)


def check_upload(place: Place, begun: object, acknowledged: bool) -> None:
    """The table is whole or not there, and is there once if it is sent again."""

    def files() -> dict[str, bytes]:
        with place.queue() as queue, queue.database.reading() as session:
            rows = session.scalars(select(Dataset)).all()
            return {
                row.sha256: queue.store.dataset(
                    dataset_name(row.sha256, "csv")
                ).read_bytes()
                for row in rows
            }

    found = files()
    check(not acknowledged or len(found) == 1, "an uploaded table is lost")
    upload(place, begun)
    with place.queue() as queue:
        DatasetStore(place.settings, queue.database, queue.store).sweep()
    check(list(files().values()) == [_TABLE], "the table differs, or is there twice")


def submit_job(place: Place, begun: object) -> None:
    """Queues a job."""
    with place.queue() as queue:
        submitted(queue)


def check_submission(place: Place, begun: object, acknowledged: bool) -> None:
    """The job can be leased, and so can another one."""
    with place.queue() as queue:
        with queue.database.reading() as session:
            found = len(session.scalars(select(Job)).all())
        check(found == 1 if acknowledged else found <= 1, "an accepted job is lost")
        submitted(queue)
        for _ in range(found + 1):
            check(queue.lease() is not None, "a job cannot be leased")


def begin_feedback(place: Place) -> None:
    """Records a version."""
    new_place(place)
    with place.queue() as queue:
        add_versions(queue.database, "model", 1)


def count_feedback(place: Place, begun: object) -> None:
    """Counts rows of feedback."""
    scores = {"log_likelihood": [-1.0] * _ROWS, "squared_error": [0.5] * _ROWS}
    with place.queue() as queue:
        models = place.settings.models
        count(queue.database, models, "model", ScoredRows(1, _ROWS, scores))


def counted_rows(place: Place) -> int:
    """Returns how many rows are counted."""
    with place.queue() as queue, queue.database.reading() as session:
        row = session.get(Feedback, ("model", 1))
        return 0 if row is None else row.num_rows


def check_feedback(place: Place, begun: object, acknowledged: bool) -> None:
    """All rows are counted or none, and later rows are."""
    found = counted_rows(place)
    allowed = (_ROWS,) if acknowledged else (0, _ROWS)
    check(found in allowed, f"{found} of {_ROWS} rows of feedback are counted")
    count_feedback(place, begun)
    check(counted_rows(place) == found + _ROWS, "later feedback is lost")


def begin_backup(place: Place) -> Lease:
    """Has a version and a table."""
    lease = begin_with_version(place)
    upload(place, None)
    return lease


def make_backup(place: Place, begun: object) -> None:
    """Backs up the service."""
    with place.queue() as queue:
        back_up(queue.database, place.settings, place.folder / "backup")


def check_backup(place: Place, begun: object, acknowledged: bool) -> None:
    """A backup is whole, or is not there and can be made."""
    destination = place.folder / "backup"
    if not acknowledged and not destination.exists():
        make_backup(place, begun)
    check(destination.exists(), "an acknowledged backup is lost")
    copy = Place(place.folder / "restored")
    copy.folder.mkdir()
    (destination / "models").rename(copy.settings.models)
    destination.rename(copy.settings.data_dir)
    for one in (place, copy):
        one.check_database()
        directory = one.settings.models / "model" / "1"
        Manifest.read(directory).verify(directory)
        check_upload(one, begun, True)


def prepare_service(place: Place, begun: object) -> None:
    """Prepares a data directory, as each start does."""
    with place.queue() as queue:
        prepare(queue.database, place.settings)


def check_preparation(place: Place, begun: object, acknowledged: bool) -> None:
    """Another start prepares the directory, and a job can be queued then."""
    place.settings.models.mkdir(exist_ok=True, parents=True)
    prepare_service(place, begun)
    check_submission(place, begun, False)


OPERATIONS = (
    Operation("publish a version", begin_publishing, publish_staged, check_publication),
    Operation("delete a version", begin_with_version, delete, check_deletion),
    Operation("upload a table", new_place, upload, check_upload),
    Operation("submit a job", new_place, submit_job, check_submission),
    Operation("count feedback", begin_feedback, count_feedback, check_feedback),
    Operation("back up", begin_backup, make_backup, check_backup),
    Operation(
        "prepare a database", lambda place: None, prepare_service, check_preparation
    ),
)


def each_call_in_turn(
    operation: Operation, kind: str, folder: Path, most: int | None
) -> dict[str, Any]:
    """Lets calls of an operation fail, all or at most a number; says what was lost."""
    template = folder / "template"
    template.mkdir()
    begun = operation.begin(Place(template))
    seconds, losses, number, calls, every = [], [], 0, 1, 1
    while number < calls:
        copy = Place(folder / "copy")
        shutil.copytree(template, copy.folder)
        # The first run counts the calls.
        acknowledged, calls = attempt(operation, copy, begun, number, kind, calls)
        every = every if most is None else -(-calls // (most + 1))
        started = time.perf_counter()
        try:
            if (copy.settings.data_dir / "tfbbb.sqlite3").exists():
                copy.check_database()
            operation.check(copy, begun, acknowledged)
        except Exception as error:
            losses.append(f"call {number}: {type(error).__name__}: {error}")
        seconds.append(time.perf_counter() - started)
        shutil.rmtree(copy.folder)
        number += every
    shutil.rmtree(template)
    return figures(seconds[1:], losses)


def attempt(
    operation: Operation, place: Place, begun: Any, number: int, kind: str, calls: int
) -> tuple[bool, int]:
    """Runs an operation in a copy of this process whose call of a number fails.

    Returns whether it was acknowledged, and how many calls it has made.
    """
    library = ctypes.CDLL(None)
    library.counted.restype = ctypes.c_long
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with suppress(BaseException):
            library.arm(ctypes.c_long(number), *_ERRORS[kind])
            operation.act(place, begun)
            os.write(writing, str(library.counted()).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    return bool(told), int(told) if told and not number else calls


def figures(seconds: Sequence[float], losses: Sequence[str]) -> dict[str, Any]:
    """Returns what was tried, what was lost, and the seconds to recover."""
    return {
        "tried": len(seconds),
        "lost": len(losses),
        "losses": list(losses[:5]),
        "median_seconds": statistics.median(seconds),
        "most_seconds": max(seconds),
    }


@dataclass
class Load:
    """Asks a service as clients do, and counts what the service acknowledges."""

    service: Replica
    mean: float
    jobs: list[str] = field(default_factory=list)
    counted: int = 0
    unknown: int = 0
    wrong: list[str] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Predicts, tells what came true and submits jobs until the block ends."""
        clients = (self._predict, self._predict, self._tell, self._train)
        threads = [
            threading.Thread(target=self._repeat, args=(one,)) for one in clients
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join()

    def _repeat(self, ask: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            with suppress(httpx.TransportError):
                ask()
            time.sleep(0.02)

    def _predict(self) -> None:
        answer = self.service.predict("diabetes", ROW)
        if answer.status_code == 200:
            mean = float(answer.json()["predictions"][0]["mean"][0])
            if abs(mean - self.mean) > 1e-3 * max(1.0, abs(self.mean)):
                self.wrong.append(f"the mean is {mean}, not {self.mean}")
        elif answer.status_code < 500 or not answer.json()["error"]:
            self.wrong.append(f"{answer.status_code}: {answer.text[:200]}")

    def _tell(self) -> None:
        body = {"instances": [ROW] * _ROWS, "targets": [self.mean] * _ROWS}
        path = "/v1/models/diabetes/versions/1/feedback"
        self.unknown += _ROWS
        answer = self.service.client.post(path, json=body)
        if answer.status_code == 200:
            self.counted += _ROWS
        if answer.status_code < 600:
            # It is known whether they count.
            self.unknown -= _ROWS

    def _train(self) -> None:
        self.jobs.append(submit([self.service], f"job-{len(self.jobs)}"))
        self._stopping.wait(4.0)


def under_load(folder: Path, minutes: float) -> dict[str, Any]:
    """Has faults of all kinds, one after the other, while clients ask a service."""
    models = folder / "models"
    shutil.copytree(copy_of_exports(folder / "exported") / "saved_models", models)
    shutil.rmtree(models / "diabetes" / "2")
    service = Replica(folder / "service", TFBBB_MODELS=str(models), TFBBB_WORKERS="2")
    chance = random.Random(0)
    seconds: dict[str, list[float]] = {kind: [] for kind in FAULTS}
    losses: list[str] = []
    try:
        service.wait_until_ready()
        load = Load(service, service.mean("diabetes", ROW))
        until = time.monotonic() + 60.0 * minutes
        with load.running():
            while time.monotonic() < until:
                kind = chance.choice(list(FAULTS))
                started = time.monotonic()
                FAULTS[kind](service)
                while not answers(service):
                    time.sleep(0.02)
                seconds[kind].append(time.monotonic() - started)
                time.sleep(chance.uniform(0.2, 1.5))
        losses += load.wrong
        losses += what_is_lost(models, load)
    finally:
        left = service.stop()
    losses += [f"the process {process.pid} does not end" for process in left]
    found = {kind: figures(of, []) for kind, of in seconds.items() if of}
    if losses:
        # Nobody knows which fault it was.
        found["any of these"] = figures([0.0], []) | {
            "tried": 0,
            "lost": len(losses),
            "losses": losses[:5],
        }
    return {"faults": found, "jobs": len(load.jobs), "feedback": load.counted}


def answers(service: Replica) -> bool:
    """Returns whether the service predicts; it is started again if it has ended."""
    if service.process.poll() is not None:
        service.start()
    with suppress(httpx.TransportError):
        return service.predict("diabetes", ROW).status_code == 200
    return False


def what_is_lost(models: Path, load: Load) -> list[str]:
    """Waits until all jobs have ended; returns what is not as it was acknowledged."""
    settings = Settings(models=models, data_dir=load.service.log.parent)
    database = Database(settings.effective_database_url)
    queue, losses = Queue(database, settings), []

    def jobs() -> Sequence[Job]:
        with database.reading() as session:
            return session.scalars(select(Job)).all()

    until = time.monotonic() + _PATIENCE
    while any(x.state not in ENDED for x in jobs()) and time.monotonic() < until:
        answers(load.service)
        time.sleep(0.2)
    with database.reading() as session:
        versions = session.scalars(select(ModelVersion)).all()
        row = session.get(Feedback, ("diabetes", 1))
    found = {job.id: job for job in jobs()}
    for job_id in load.jobs:
        job = found.get(job_id)
        if job is None or job.state != JobState.SUCCEEDED:
            ended = "lost" if job is None else f"{job.state}: {job.error}"
            # A worker that is killed three times without progress.
            if "3 attempts" not in ended:
                losses.append(f"a job is {ended}")
        elif [v.number for v in versions if v.job_id == job_id] != [job.version]:
            losses.append(f"a job has not one version: {job_id}")
    rows = 0 if row is None else row.num_rows
    if not load.counted <= rows <= load.counted + load.unknown:
        losses.append(f"{rows} rows of feedback, of {load.counted} + {load.unknown}")
    for name in {v.name for v in versions}:
        if queue.store.numbers(name) != sorted(
            v.number for v in versions if v.name == name
        ):
            losses.append(f"the store has other versions of {name}")
    database.close()
    return losses


def kill(kind: str) -> Callable[[Replica], None]:
    """Returns what kills a process of a kind."""

    def act(service: Replica) -> None:
        below = service.children() if kind == "parent" else []
        service.kill(kind)
        # They end by themselves, and keep the port till then.
        psutil.wait_procs(below, timeout=_PATIENCE)

    return act


def stop(service: Replica) -> None:
    """Stops the service in order."""
    service.process.terminate()
    service.process.wait(60)


def lock_database(service: Replica) -> None:
    """Keeps every other process from writing for a second."""
    path = service.log.parent / "tfbbb.sqlite3"
    with closing(sqlite3.connect(path, timeout=10.0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(1.0)


def move_clock(service: Replica) -> None:
    """Moves the clock of all processes by a day, there or back."""
    clock = Path(os.environ[_CLOCK])
    clock.write_text("0" if clock.read_text() != "0" else str(_DAY))


def models_of(service: Replica) -> Path:
    """Returns the models directory of a service, beside its own."""
    return service.log.parents[1] / "models"


def damage_version(service: Replica) -> None:
    """Flips a byte of a version, and back; meanwhile nobody may get a wrong answer."""
    (path,) = models_of(service).glob("iris/*/variables/variables.data-*")
    content = bytearray(path.read_bytes())
    expected = service.predict("iris", [*ROW, 4.0]).text
    content[100] ^= 255
    path.write_bytes(content)
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        answer = service.predict("iris", [*ROW, 4.0])
        # A process that has loaded it answers as before.
        check(answer.status_code >= 500 or answer.text == expected, answer.text)
        time.sleep(0.1)
    content[100] ^= 255
    path.write_bytes(content)


def make_models_read_only(service: Replica) -> None:
    """Keeps everybody from writing models for two seconds."""
    models = str(models_of(service))
    subprocess.run(["mount", "--bind", models, models], check=True)
    try:
        again = ["mount", "-o", "remount,bind,ro", models]
        subprocess.run(again, check=True)
        time.sleep(2.0)
    finally:
        subprocess.run(["umount", "--lazy", models], check=True)


FAULTS: Mapping[str, Callable[[Replica], None]] = {
    "an API process killed": kill("api"),
    "the training process killed": kill("worker"),
    "the parent killed": kill("parent"),
    "all processes killed": kill("service"),
    "SIGTERM": stop,
    "the database locked for 1 s": lock_database,
    "the clock moved by a day": move_clock,
    "a version damaged for 2 s": damage_version,
    "the models directory read-only for 2 s": make_models_read_only,
}


if __name__ == "__main__":
    main()
