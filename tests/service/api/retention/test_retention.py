import asyncio
import hashlib
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from sqlalchemy import func, select, update

from service.api.datasets.store import DatasetStore
from service.api.models.repository import version_times
from service.api.retention import removal
from service.api.retention.removal import Outcome
from service.api.state import ServiceState
from service.shared.database import Database
from service.shared.database.tables import (
    AuditEntry,
    Base,
    Dataset,
    Event,
    Job,
    ModelVersion,
)
from service.shared.errors import Unavailable
from service.shared.files import JobFiles
from service.shared.job_events import append
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.queued import add_table, submitted
from tests.service.serving import serving, wait_until_ready

DAY = 86400.0


class NoModels:
    """The models of a machine that only trains."""

    async def models(self) -> None:
        raise Unavailable("No model process answers.")


@pytest.fixture
def state(queue: Queue) -> ServiceState:
    """A service that keeps jobs 30 days, logs 10, datasets 20, and audits 100."""
    settings = queue.settings.model_copy(
        update={
            "keep_versions": 1,
            "job_days": 30.0,
            "job_log_days": 10.0,
            "dataset_days": 20.0,
            "audit_days": 100.0,
        }
    )
    queue.settings = settings
    state = mock.Mock(spec=ServiceState)
    state.settings, state.database, state.queue = settings, queue.database, queue
    state.models = NoModels()
    state.datasets = DatasetStore(settings, queue.database, queue.store)
    return state


def ended_job(queue: Queue, days: float, **columns: Any) -> str:
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


def dataset(queue: Queue, days: float, name: str, **columns: Any) -> str:
    sha256 = hashlib.sha256(name.encode()).hexdigest()
    file = queue.settings.data_dir / "datasets" / f"{sha256}.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("a\n1")
    created_at = time.time() - days * DAY
    return add_table(queue, name=name, sha256=sha256, created_at=created_at, **columns)


def found(state: ServiceState) -> dict[str, list[str]]:
    return subjects(asyncio.run(removal.find(state)))


def remove(state: ServiceState) -> dict[str, list[str]]:
    return subjects(asyncio.run(removal.remove(state)))


def subjects(outcomes: Iterable[Outcome]) -> dict[str, list[str]]:
    return {
        outcome.kind.name: [item.subject for item in outcome.items]
        for outcome in outcomes
        if outcome.items
    }


def ids(database: Database, table: type[Base]) -> set[str]:
    with database.reading() as session:
        return set(session.scalars(select(table.id)))  # type: ignore[attr-defined]


def num_events(queue: Queue, job_id: str, type_: str) -> int:
    query = select(func.count()).where(Event.job_id == job_id, Event.type == type_)
    with queue.database.reading() as session:
        return session.scalar(query) or 0


def test_old_jobs_go_first_their_logs_then_themselves(
    queue: Queue, state: ServiceState
) -> None:
    recent, older, oldest = (ended_job(queue, days) for days in (5, 15, 40))
    (waiting,) = submitted(queue)
    with queue.database.writing() as session:
        session.get_one(Job, waiting).created_at = 1.0
    # The log of a job that goes is counted with it.
    expected = {"jobs": [oldest], "job logs": [older]}
    assert found(state) == found(state) == remove(state) == expected
    assert ids(queue.database, Job) == {recent, older, waiting}
    assert num_events(queue, older, "epoch") == 0
    assert num_events(queue, older, "state") == 1
    assert num_events(queue, recent, "epoch") == 2
    logs = {path.parent.name for path in queue.settings.data_dir.glob("jobs/*/*")}
    assert logs == {recent}
    assert remove(state) == {}


def test_datasets_go_that_no_job_has_and_nobody_sent_again(
    queue: Queue, state: ServiceState
) -> None:
    unused = dataset(queue, 25, "unused")
    used = dataset(queue, 25, "used")
    young = dataset(queue, 15, "young")
    again = dataset(queue, 25, "again", uploaded_again_at=time.time() - 2 * DAY)
    ended_job(queue, 5, dataset_id=used)
    assert remove(state) == {"datasets": [unused]}
    assert ids(queue.database, Dataset) == {used, young, again}
    assert len(list(queue.settings.data_dir.glob("datasets/*"))) == 3


def test_what_was_needed_meanwhile_stays(queue: Queue, state: ServiceState) -> None:
    taken, job_id = dataset(queue, 25, "taken"), ended_job(queue, 40)
    outcomes = asyncio.run(removal.find(state))
    # Between the look and the removal, a job takes the dataset, and one is retried.
    submitted(queue, dataset_id=taken)
    with queue.database.writing() as session:
        queue.retry(session, session.get_one(Job, job_id))
    for outcome in outcomes:
        for item in outcome.items:
            asyncio.run(removal._remove(state, outcome.kind, item))
    assert taken in ids(queue.database, Dataset)
    assert num_events(queue, job_id, "epoch") == 2
    assert JobFiles(queue.settings, job_id).log.exists()


def test_audit_entries_go_by_age(queue: Queue, state: ServiceState) -> None:
    now = time.time()
    submitted(queue, 2)
    with queue.database.writing() as session:
        oldest = select(func.min(AuditEntry.id)).scalar_subquery()
        session.execute(
            update(AuditEntry)
            .where(AuditEntry.id == oldest)
            .values(created_at=now - 200 * DAY)
        )
    assert remove(state) == {"audit entries": ["1 rows"]}
    assert len(ids(queue.database, AuditEntry)) == 1


@pytest.fixture
def client(saved_models: Path, tmp_path: Path) -> Iterator[httpx.Client]:
    """A service that keeps the two newest versions, and younger ones for a day."""
    models = tmp_path / "models"
    for number in range(1, 6):
        shutil.copytree(saved_models / "diabetes" / "2", models / f"houses/{number}")
    settings = Settings(
        models=models,
        data_dir=tmp_path / "data",
        keep_versions=2,
        version_days=1.0,
        poll_seconds=0.1,
    )
    with serving(settings) as client:
        wait_until_ready(client)
        yield client


def test_versions_that_nothing_needs_go_after_they_were_shown(
    client: httpx.Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for label, number in (("champion", 2), ("challenger", 3)):
        path = f"/v1/models/houses/labels/{label}"
        assert client.put(path, json={"version": number}).status_code == 200

    def versions(response: httpx.Response) -> Any:
        assert response.status_code == 200, response.text
        return next(k for k in response.json()["kinds"] if k["kind"] == "versions")

    assert versions(client.get("/v1/retention"))["num_things"] == 0
    database = Database(f"sqlite:///{tmp_path}/data/tfbbb.sqlite3")
    # The models' process records the versions beside `latest` when it finds the time.
    while len(version_times(database)) < 5:
        time.sleep(0.05)
    with database.writing() as session:
        session.execute(update(ModelVersion).values(created_at=1e9))
    shown = versions(client.get("/v1/retention"))
    assert shown["settings"] == {"TFBBB_KEEP_VERSIONS": 2, "TFBBB_VERSION_DAYS": 1}
    assert [thing["subject"] for thing in shown["things"]] == ["houses/1"]
    place = tmp_path / "models" / "houses" / "1"
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    assert shown["num_bytes"] == size > 0
    assert place.exists()
    assert versions(client.post("/v1/retention:apply")) == shown
    assert sorted(path.name for path in place.parent.iterdir()) == list("2345")
    assert f"removed 1 versions of {size} bytes: houses/1" in caplog.text
    (deleted,) = client.get("/v1/audit?kind=version&subject=houses/1").json()[
        "changes"
    ][:1]
    assert deleted["action"] == "delete"
    database.close()


def test_a_service_announces_an_hour_before_it_removes(
    state: ServiceState, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = ended_job(queue, 40)
    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            assert "in an hour, retention removes 1 jobs of" in caplog.text
            assert job_id in ids(queue.database, Job)
        if len(slept) == 3:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(removal.tend(state, sleep))
    assert slept[1:] == [3600.0, 3600.0]
    assert job_id not in ids(queue.database, Job)
    with queue.database.reading() as session:
        by = session.scalars(
            select(AuditEntry.actor).where(AuditEntry.action == "delete")
        )
        assert by.all() == ["retention"]
