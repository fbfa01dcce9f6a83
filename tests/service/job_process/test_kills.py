"""Processes are killed at any time: no job is lost, none is published twice."""

import random
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import select

from service.job_process.cleanup import remove_leftovers
from service.shared.database.tables import Job, ModelVersion
from service.shared.job_state import ENDED
from service.shared.queue import Queue
from service.shared.store import STAGING
from service.shared.versions import manifest_digest
from tests.service.job_process.killing import REAL, STAND_IN, Services
from tests.service.job_process.stand_in_trainer import result_of
from tests.service.queued import job, states, submitted
from tfbbb.export.manifest import Manifest

_TABLE = "x,y\n" + "".join(f"{0.1 * i:.1f},{i % 7}\n" for i in range(60))
_TARGETS = ("trainer", "dispatcher", "api", "all")


@pytest.fixture
def services(queue: Queue, request: pytest.FixtureRequest) -> Iterator[Services]:
    count, module = getattr(request, "param", (2, STAND_IN))
    # The short lease makes a killed process' job come back within the test.
    changes = {"lease_seconds": 3.0, "start_models": module is REAL}
    if module is REAL:
        changes |= {"lease_seconds": 10.0, "job_slots": 1, "checkpoint_seconds": 0.5}
    running = Services(queue.settings.model_copy(update=changes), count, module)
    yield running
    running.close()


def submit(services: Services, number: int, **training: object) -> str:
    """Uploads the table and queues a job, however often processes are killed."""
    dataset = services.ask(
        "POST",
        "/v1/datasets",
        content=_TABLE,
        headers={"Content-Type": "text/csv"},
        timeout=30,
    ).json()
    body = {"dataset_id": dataset["id"], "target": "y", "name": "model"}
    answer = services.ask(
        "POST",
        "/v1/jobs",
        json=body | {"training": training, "task": "regression"},
        headers={"Idempotency-Key": f"job {number}"},
        timeout=30,
    )
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["id"])


def wait_until_all_ended(queue: Queue, jobs: list[str], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(job(queue, job_id).state not in ENDED for job_id in jobs):
        assert time.monotonic() < deadline, [job(queue, j).state for j in jobs]
        time.sleep(0.1)


@pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)],
    indirect=True,
)
@pytest.mark.parametrize(
    ("num_kills", "num_jobs"),
    [
        (5, 5),
        pytest.param(15, 18, marks=pytest.mark.slow),
        pytest.param(50, 60, marks=pytest.mark.slow),
    ],
)
def test_every_job_ends_once_whatever_is_killed(
    queue: Queue, services: Services, num_kills: int, num_jobs: int
) -> None:
    chance = random.Random(num_kills)
    jobs = [submit(services, number) for number in range(num_jobs // 2)]
    for kill in range(num_kills):
        time.sleep(chance.uniform(0.0, 2.0))
        services.kill(chance.choices(_TARGETS, [4, 2, 2, 1])[0], chance)
        if len(jobs) < num_jobs and kill % 2:
            jobs.append(submit(services, len(jobs)))
    wait_until_all_ended(queue, jobs, seconds=90 + 3 * num_jobs)
    services.stop()
    check_what_is_left(queue, jobs)
    for row in rows_of(queue):
        if row.state == "succeeded":
            directory = queue.settings.models / row.name / str(row.version)
            assert (directory / "saved_model.pb").read_text() == result_of(row)


@pytest.mark.slow
@pytest.mark.parametrize("services", [(1, REAL)], indirect=True)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("num_kills", "num_jobs"),
    [(3, 2), (50, 12)],
)
def test_every_training_ends_once_and_loads_whatever_is_killed(
    queue: Queue, services: Services, num_kills: int, num_jobs: int
) -> None:
    from tfbbb.export import load
    from tfbbb.export.inputs import any_row

    chance = random.Random(num_kills)
    jobs = [submit(services, n, steps=3000) for n in range(num_jobs)]
    for _ in range(num_kills):
        time.sleep(chance.uniform(0.0, 10.0))
        what = chance.choices([*_TARGETS, "models"], [4, 2, 2, 1, 1])[0]
        services.kill(what, chance)
    wait_until_all_ended(queue, jobs, seconds=120 + 30 * num_jobs)
    services.stop()
    check_what_is_left(queue, jobs)
    for row in rows_of(queue):
        if row.state == "succeeded":
            model = load(queue.settings.models / row.name / str(row.version))
            assert model.predict(any_row(model.manifest))["variance"] > 0


def rows_of(queue: Queue) -> list[Job]:
    with queue.database.reading() as session:
        return list(session.scalars(select(Job)))


def check_what_is_left(queue: Queue, jobs: list[str]) -> None:
    settings, rows = queue.settings, rows_of(queue)
    remove_leftovers(queue)
    with queue.database.reading() as session:
        versions = list(session.scalars(select(ModelVersion)))
    assert sorted(row.id for row in rows) == sorted(jobs)
    for row in rows:
        told = states(queue, row.id)
        assert [state for state in told if state in ENDED] == told[-1:] == [row.state]
        of_job = [v for v in versions if v.job_id == row.id]
        if row.state != "succeeded":
            # Trainers were killed, so that a job may have died three times.
            assert "died 3 times" in (row.error or "")
            assert of_job == []
            continue
        assert [v.number for v in of_job] == [row.version]
        directory = settings.models / row.name / str(row.version)
        assert manifest_digest(directory) == of_job[0].digest
        Manifest.read(directory).verify(directory)
    assert 2 * sum(row.state == "succeeded" for row in rows) > len(rows)
    on_disk = {path.name for path in settings.models.glob("model/*")}
    assert on_disk == {str(version.number) for version in versions}
    assert list((settings.models / STAGING).glob("*")) == []
    assert list((settings.data_dir / "jobs").glob("*/scratch")) == []
    assert list((settings.data_dir / "uploads").glob("*")) == []


@pytest.mark.parametrize("services", [(1, STAND_IN)], indirect=True)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_stopped_service_puts_its_saved_jobs_back(
    queue: Queue, services: Services
) -> None:
    (job_id,) = submitted(queue, spec={"steps": 300})
    while not (progress := job(queue, job_id).progress):
        assert job(queue, job_id).state not in ENDED
        time.sleep(0.02)
    services.stop()
    stopped = job(queue, job_id)
    assert (stopped.state, stopped.deaths) == ("queued", 0)
    assert stopped.progress["saved_step"] >= progress["step"]
    assert (queue.settings.data_dir / "jobs" / job_id / "scratch").exists()
    services.start_again()
    wait_until_all_ended(queue, [job_id], seconds=60)
    services.stop()
    check_what_is_left(queue, [job_id])
