"""Queries jobs in the database."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.shared.database import Database
from service.shared.database.tables import Job, ModelVersion
from service.shared.errors import JobStateConflict, UnknownJob
from service.shared.files import JobFiles
from service.shared.job_state import ENDED
from service.shared.json_types import JsonObject
from service.shared.settings import Settings


def get_job(session: Session, job_id: str, *, to_change: bool = False) -> Job:
    """Finds a job."""
    job = session.get(
        Job, job_id, with_for_update=to_change or None, populate_existing=to_change
    )
    if job is None:
        raise UnknownJob(f"There is no job {job_id}; `GET /v1/jobs` lists the jobs.")
    return job


def delete_job(
    database: Database,
    settings: Settings,
    job_id: str,
    finished_at: float | None = None,
) -> None:
    """Deletes a job that has ended, its events and its files, but not its model."""
    with database.writing() as session:
        job = get_job(session, job_id, to_change=True)
        if job.state not in ENDED:
            raise JobStateConflict(
                "Only a job that has ended can be deleted; cancel it first. "
                f"Received: job {job_id}, which is {job.state}"
            )
        if finished_at not in (None, job.finished_at):
            raise JobStateConflict(f"The job {job_id} was tried again meanwhile.")
        files = JobFiles(settings, job_id)
        # Files first: after a crash in between, the job can be deleted again. Scratch
        # may be large, and is only moved aside before the commit.
        files.discard_scratch()
        files.log.unlink(missing_ok=True)
        session.delete(job)
    files.remove()


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
