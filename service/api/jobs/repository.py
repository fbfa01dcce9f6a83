"""Queries jobs in the database."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.api import pagination as cursor
from service.api.pagination import Cursor
from service.shared.database.tables import Job, ModelVersion
from service.shared.errors import UnknownJob
from service.shared.job_state import JobState
from service.shared.json_types import JsonObject


def page(
    session: Session,
    *,
    state: JobState | None,
    name: str | None,
    dataset_id: str | None,
    before: Cursor | None,
    limit: int,
) -> tuple[Sequence[Job], Cursor | None]:
    """Returns a page of jobs, newest first, and the cursor of the next page."""
    wanted = {"state": state, "name": name, "dataset_id": dataset_id}
    given = {column: value for column, value in wanted.items() if value is not None}
    query = select(Job).filter_by(**given)
    return cursor.page(session, query, Job, before, limit)


def get_job(session: Session, job_id: str, *, to_change: bool = False) -> Job:
    """Finds a job.

    Raises:
        UnknownJob: If no job has this id.
    """
    job = session.get(
        Job, job_id, with_for_update=to_change or None, populate_existing=to_change
    )
    if job is None:
        raise UnknownJob(f"There is no job {job_id}; `GET /v1/jobs` lists the jobs.")
    return job


def find_judgements(
    session: Session, jobs: Sequence[Job]
) -> dict[tuple[str, int | None], JsonObject | None]:
    """Returns the recorded judgements of the versions of jobs, by name and number."""
    numbers = {job.version for job in jobs if job.version is not None}
    found = session.scalars(
        select(ModelVersion).where(
            ModelVersion.name.in_({job.name for job in jobs}),
            ModelVersion.number.in_(numbers),
        )
    )
    return {(v.name, v.number): v.lineage.get("judgement") for v in found}


def find_judgement(session: Session, job: Job) -> JsonObject | None:
    """Returns how the job's version compares with its baselines, if it is recorded."""
    version = session.get(ModelVersion, (job.name, job.version))
    return None if version is None else version.lineage.get("judgement")
