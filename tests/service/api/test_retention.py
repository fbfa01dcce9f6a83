import asyncio
import hashlib
import shutil
import time

import pytest
from sqlalchemy import func, select, update

from service.api import retention
from service.api.retention import prune
from service.shared.database.tables import (
    AuditEntry,
    Dataset,
    Event,
    Job,
    Label,
    ModelVersion,
)
from service.shared.files import JobFiles
from service.shared.job_events import append
from tests.service.queued import add_table, submitted

EACH_DATABASE = True
DAY = 86400.0


@pytest.fixture
def queue(queue):
    """The jobs of a service that keeps things for some days."""
    queue.settings = queue.settings.model_copy(
        update={
            "keep_versions": 2,
            "version_days": 1.0,
            "job_days": 30.0,
            "dataset_days": 20.0,
            "audit_days": 100.0,
        }
    )
    return queue


def pruned(queue, *, dry_run=False):
    found = {}
    for item in prune(queue.database, queue.settings, dry_run=dry_run):
        found.setdefault(item.kind, []).append(item.subject)
    return found


def ended_job(queue, days, **columns):
    """Makes a job that ended some days ago, with two epochs and a log."""
    (job_id,) = submitted(queue, **columns)
    with queue.database.writing() as session:
        job = session.get_one(Job, job_id)
        for epoch in (1, 2):
            append(session, job, "epoch", {"epoch": epoch}, 1.0)
        job.state, job.finished_at = "succeeded", time.time() - days * DAY
    log = JobFiles(queue.settings, job_id).log
    log.parent.mkdir(parents=True)
    log.write_text("a log\n")
    return job_id


def dataset(queue, days, name, **columns):
    sha256 = hashlib.sha256(name.encode()).hexdigest()
    file = queue.settings.data_dir / "datasets" / f"{sha256}.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("a\n1")
    created_at = time.time() - days * DAY
    return add_table(queue, name=name, sha256=sha256, created_at=created_at, **columns)


def ids(database, table):
    with database.reading() as session:
        return set(session.scalars(select(table.id)))


def num_events(queue, job_id, type_):
    query = select(func.count()).where(Event.job_id == job_id, Event.type == type_)
    with queue.database.reading() as session:
        return session.scalar(query)


def test_jobs_that_ended_long_ago_go_with_their_logs(queue):
    recent, oldest = ended_job(queue, 5), ended_job(queue, 40)
    (waiting,) = submitted(queue)
    with queue.database.writing() as session:
        session.get_one(Job, waiting).created_at = 1.0
    assert pruned(queue, dry_run=True) == pruned(queue) == {"job": [oldest]}
    assert ids(queue.database, Job) == {recent, waiting}
    assert num_events(queue, recent, "epoch") == 2
    logs = {path.parent.name for path in queue.settings.data_dir.glob("jobs/*/*")}
    assert logs == {recent}
    assert pruned(queue) == {}


def test_datasets_go_that_no_job_has_and_nobody_sent_again(queue):
    unused = dataset(queue, 25, "unused")
    used = dataset(queue, 25, "used")
    young = dataset(queue, 15, "young")
    again = dataset(queue, 25, "again", uploaded_again_at=time.time() - 2 * DAY)
    ended_job(queue, 5, dataset_id=used)
    assert pruned(queue) == {"dataset": [unused]}
    assert ids(queue.database, Dataset) == {used, young, again}
    assert len(list(queue.settings.data_dir.glob("datasets/*"))) == 3


def test_what_is_needed_meanwhile_stays(queue, monkeypatch):
    taken, job_id = dataset(queue, 25, "taken"), ended_job(queue, 40)

    def use(_):
        # Between the look and the removal, a job takes the dataset, and one is retried.
        submitted(queue, dataset_id=taken)
        with queue.database.writing() as session:
            queue.retry(session, session.get_one(Job, job_id))

    monkeypatch.setattr(retention, "free_reserve", use)
    assert pruned(queue) == {}
    assert taken in ids(queue.database, Dataset)
    assert num_events(queue, job_id, "epoch") == 2
    assert JobFiles(queue.settings, job_id).log.exists()


def test_audit_entries_go_by_age(queue):
    submitted(queue, 2)
    with queue.database.writing() as session:
        oldest = select(func.min(AuditEntry.id)).scalar_subquery()
        session.execute(
            update(AuditEntry)
            .where(AuditEntry.id == oldest)
            .values(created_at=time.time() - 200 * DAY)
        )
    assert pruned(queue) == {"audit": ["1 entries"]}
    assert len(ids(queue.database, AuditEntry)) == 1


def add_versions(queue, saved_models, *numbers):
    """Makes old versions of a model; returns its directory."""
    directory = queue.settings.models / "houses"
    with queue.database.writing() as session:
        for number in numbers:
            shutil.copytree(saved_models / "diabetes" / "2", directory / f"{number}")
            session.add(
                ModelVersion(
                    name="houses", number=number, digest="0", lineage={}, created_at=1e9
                )
            )
    return directory


def test_versions_that_nothing_needs_go(queue, saved_models):
    directory = add_versions(queue, saved_models, 1, 2, 3, 4, 5, 6)
    with queue.database.writing() as session:
        session.add(Label(name="houses", label="live", number=2, moved_at=1e9))
        # Young ones stay.
        session.get_one(ModelVersion, ("houses", 4)).created_at = time.time()
    gone = {"version": ["houses/1", "houses/3"]}
    assert pruned(queue, dry_run=True) == gone
    assert len([*directory.iterdir()]) == 6
    assert pruned(queue) == gone
    assert sorted(path.name for path in directory.iterdir()) == list("2456")
    with queue.database.reading() as session:
        deleted = select(AuditEntry.actor).where(
            AuditEntry.kind == "version", AuditEntry.action == "delete"
        )
        assert session.scalars(deleted).all() == ["retention"] * 2


def test_versions_stay_while_latest_is_damaged(queue, saved_models):
    directory = add_versions(queue, saved_models, 1, 2, 3)
    (directory / "3" / "saved_model.pb").write_bytes(b"")
    assert pruned(queue) == {}


def test_a_service_removes_once_a_day(queue, caplog):
    job_id = ended_job(queue, 40)
    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(retention.tend(queue.database, queue.settings, sleep))
    assert slept == [3600.0, DAY]
    assert f"removed the job {job_id}" in caplog.text
    assert job_id not in ids(queue.database, Job)
