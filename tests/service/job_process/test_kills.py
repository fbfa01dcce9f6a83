"""Processes are killed at any time: no job is lost, none is published twice."""

import random
import time

import pytest

from service.job_process.upkeep import remove_leftovers
from service.shared.job_state import ENDED
from service.shared.store import STAGING
from tests.service.job_process.stand_in_worker import result_of
from tests.service.queued import job, submitted
from tests.service.running import Replica, check_jobs, stopped_at_the_end, submit
from tfbbb.export.manifest import Manifest

_KINDS = ("worker", "parent", "all")


@pytest.fixture
def services(queue, tmp_path):
    # Services on one directory, which SQLite does not allow, share a PostgreSQL
    # database.
    environment = queue.settings.model_copy(update={"lease_seconds": 600.0})
    found = [
        Replica(tmp_path / f"service-{number}", **environment.environment())
        for number in range(1 if queue.database.is_sqlite else 2)
    ]
    with stopped_at_the_end(*found):
        yield found


def kill(services, kind, chance):
    """Kills a process of a kind, or all; starts services anew that were killed."""
    killed = services if kind == "all" else [chance.choice(services)]
    for service in killed:
        service.kill("service" if kind == "all" else kind)
        if kind in ("all", "parent"):
            service.start()


@pytest.mark.parametrize(
    ("database_url", "num_kills", "num_jobs"),
    [("sqlite", 3, 4), pytest.param("postgresql", 50, 60, marks=pytest.mark.slow)],
    indirect=["database_url"],
)
def test_every_job_ends_once_whatever_is_killed(queue, services, num_kills, num_jobs):
    chance = random.Random(num_kills)
    jobs = [submit(services, f"job-{number}") for number in range(num_jobs // 2)]
    for number in range(num_kills):
        time.sleep(chance.uniform(0.0, 1.5))
        kill(services, chance.choices(_KINDS, [6, 2, 1])[0], chance)
        if len(jobs) < num_jobs and number % 2:
            jobs.append(submit(services, f"job-{len(jobs)}"))
    succeeded = check_jobs(queue, jobs)
    for service in services:
        assert service.stop() == []
    check_what_is_left(queue, succeeded)


def check_what_is_left(queue, succeeded):
    settings = queue.settings
    for row in succeeded:
        directory = settings.models / row.name / str(row.version)
        Manifest.read(directory).verify(directory)
        assert (directory / "saved_model.pb").read_text() == result_of(row)
    remove_leftovers(queue)
    assert list((settings.models / STAGING).glob("*")) == []
    assert list((settings.data_dir / "jobs").glob("*/scratch")) == []
    assert list((settings.data_dir / "uploads").glob("*")) == []


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_stopped_service_puts_its_saved_jobs_back(queue, services):
    (service,) = services
    (job_id,) = submitted(queue, spec={"steps": 300})
    while not (progress := job(queue, job_id).progress):
        assert job(queue, job_id).state not in ENDED
        time.sleep(0.02)
    assert service.stop() == []
    stopped = job(queue, job_id)
    assert (stopped.state, stopped.deaths) == ("queued", 0)
    assert stopped.progress["saved_step"] >= progress["step"]
    assert (queue.settings.data_dir / "jobs" / job_id / "scratch").exists()
    service.start()
    succeeded = check_jobs(queue, [job_id])
    assert service.stop() == []
    check_what_is_left(queue, succeeded)
