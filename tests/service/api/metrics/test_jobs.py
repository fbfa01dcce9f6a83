from functools import partial

import pytest

from service.api.metrics import Registries, job_metrics
from service.shared.database import Database
from service.shared.database.tables import Job


def add(
    database: Database, state: str, created: float, seconds: float | None = None
) -> None:
    with database.writing() as session:
        job = Job(name="m", dataset_sha256="", dataset_format="csv", spec={})
        job.state, job.created_at = state, created
        if seconds is not None:
            job.started_at, job.finished_at = created, created + seconds
        session.add(job)


def test_jobs_are_counted_by_state_and_timed(database: Database) -> None:
    with database.reading() as session:
        now = database.now(session)
    add(database, "queued", now - 100)
    add(database, "queued", now - 10)
    for seconds in (0.5, 5, 50):
        add(database, "succeeded", now - 1000, seconds)
    add(database, "cancelled", now - 1000)
    registries = Registries()
    registries.observe(partial(job_metrics, database))

    def value(name: str, **labels: str) -> float | None:
        return registries.observed.get_sample_value(name, labels)

    assert value("tfbbb_jobs", state="queued") == 2
    assert value("tfbbb_jobs", state="succeeded") == 3
    assert value("tfbbb_jobs", state="running") == 0
    age = value("tfbbb_job_oldest_queued_seconds")
    assert age is not None
    assert age >= 100
    name = "tfbbb_job_duration_seconds"
    for bound, count in (("1.0", 1), ("5.0", 2), ("30.0", 2), ("+Inf", 3)):
        assert value(f"{name}_bucket", state="succeeded", le=bound) == count
    assert value(f"{name}_sum", state="succeeded") == pytest.approx(55.5)
    assert value(f"{name}_count", state="cancelled") is None
