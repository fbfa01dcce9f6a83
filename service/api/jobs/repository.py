"""Jobs in the database: submitted after validation, found and deleted."""

import hashlib
from collections.abc import Sequence

import orjson
import sqlalchemy
from sqlalchemy import select
from sqlalchemy.orm import Session

from service.api.jobs.schemas import JobRequest
from service.api.keys.keyring import Caller
from service.shared.database import Database
from service.shared.database.tables import Dataset, Job, ModelVersion
from service.shared.errors import (
    IdempotencyKeyReused,
    InvalidRequest,
    InvalidTable,
    JobStateConflict,
    QueueFull,
    UnknownDataset,
    UnknownJob,
    UnknownModel,
)
from service.shared.files import JobFiles
from service.shared.job_state import ENDED, JobState
from service.shared.queue import Queue
from service.shared.settings import Settings
from tfbbb.base.types import JsonObject
from tfbbb.training.expected_time import expected_seconds
from tfbbb.training.record import TrainingRecord
from tfbbb.training.spec import JobSpec, SpecError


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
) -> dict[str | None, JsonObject | None]:
    """Returns the recorded judgements of the versions of jobs, by the job's id."""
    columns = select(ModelVersion.job_id, ModelVersion.lineage)
    found = session.execute(
        columns.where(ModelVersion.job_id.in_([job.id for job in jobs]))
    )
    return {job_id: lineage.get("judgement") for job_id, lineage in found}


def submit(
    queue: Queue, caller: Caller, request: JobRequest, idempotency_key: str | None
) -> tuple[Job, bool]:
    """Queues a job, unless the same request has queued it before."""
    document = request.model_dump(mode="json")
    body = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    sha256 = hashlib.sha256(body).hexdigest()
    try:
        # Before the transaction, as a download may take minutes.
        parent = _read_parent(queue, request)
        with queue.database.writing() as session:
            queue.database.lock(session, f"jobs of {caller.key_id}")
            if idempotency_key is not None:
                earlier = _find_earlier(session, caller, idempotency_key, sha256)
                if earlier is not None:
                    return earlier, False
            check_quota(queue, session, caller)
            dataset = _validate_dataset(session, request, parent)
            job = Job(
                key_id=caller.key_id,
                idempotency_key=idempotency_key,
                request_sha256=sha256,
                name=request.name,
                dataset_id=dataset.id,
                dataset_sha256=dataset.sha256,
                dataset_format=dataset.format,
                spec=request.spec(),
                priority=request.priority,
                progress=_expected(dataset, request),
                created_at=queue.database.now(session),
            )
            queue.submit(session, job)
            return job, True
    except SpecError as error:
        raise InvalidRequest(str(error), error.field) from None


def _expected(dataset: Dataset, spec: JobSpec) -> JsonObject:
    """Returns the progress of a job that has not begun: the time it will take."""
    columns = spec.features or dataset.columns
    seconds = expected_seconds(dataset.num_rows, len(columns), spec)
    return {"timing": {"seconds_left": seconds}}


def lock_inputs(session: Session, job: Job) -> None:
    """Locks the dataset and the parent version of a job until the commit."""
    if job.dataset_id is None or _lock_dataset(session, job.dataset_id) is None:
        raise JobStateConflict(
            f"The dataset of job {job.id} was deleted: upload it again and submit a "
            "new job."
        )
    start = job.spec.get("start_from")
    if start and _lock_version(session, start["model"], start["version"]) is None:
        raise JobStateConflict(
            f"Job {job.id} starts from version {start['version']} of the model "
            f"{start['model']!r}, which was deleted: submit a new job that starts from "
            "another version."
        )


def _lock_dataset(session: Session, dataset_id: str) -> Dataset | None:
    """Locks a dataset until the commit against deletion, but not against other jobs."""
    shared = {"read": True, "key_share": True}
    return session.get(Dataset, dataset_id, with_for_update=shared)


def _lock_version(session: Session, name: str, number: int) -> ModelVersion | None:
    """Locks a version until the commit; returns None if it was deleted."""
    version = session.get(ModelVersion, (name, number), with_for_update={"read": True})
    return None if version is None or version.deleted_at is not None else version


def _find_earlier(
    session: Session, caller: Caller, idempotency_key: str, sha256: str
) -> Job | None:
    """Returns the job of an earlier request; raises if its body was another."""
    earlier = session.scalar(
        select(Job).where(
            Job.key_id.is_not_distinct_from(caller.key_id),
            Job.idempotency_key == idempotency_key,
        )
    )
    if earlier is not None and earlier.request_sha256 != sha256:
        raise IdempotencyKeyReused(
            f"The Idempotency-Key {idempotency_key!r:.100} was sent with another body, "
            f"which created job {earlier.id}; use a new key for each job."
        )
    return earlier


def check_quota(queue: Queue, session: Session, caller: Caller) -> None:
    """Checks that the caller may queue one more job; holds until the commit."""
    queue.database.lock(session, f"jobs of {caller.key_id}")
    queued = select(sqlalchemy.func.count()).where(
        Job.state == JobState.QUEUED, Job.key_id.is_not_distinct_from(caller.key_id)
    )
    count, most = session.scalar(queued) or 0, queue.settings.max_queued_jobs
    if count >= most:
        raise QueueFull(
            f"The queue of the key {caller.name!r} is full: {count} jobs are queued, "
            f"and at most {most} may be; wait until some start, or cancel some."
        )


def _read_parent(queue: Queue, request: JobRequest) -> TrainingRecord | None:
    """Returns the training record of the parent version; may have to download it."""
    start = request.start_from
    if start is None:
        return None
    with queue.database.reading() as session:
        version = session.get(ModelVersion, (start.model, start.version))
    if version is None or version.deleted_at is not None:
        return None
    return TrainingRecord.read(queue.store.version(start.model, start.version))


def _validate_dataset(
    session: Session, request: JobRequest, parent: TrainingRecord | None
) -> Dataset:
    """Validates a request against its inputs; locks them until the commit."""
    dataset = _lock_dataset(session, request.dataset_id)
    if dataset is None:
        raise UnknownDataset(
            f"There is no dataset {request.dataset_id}; `GET /v1/datasets` lists "
            "the datasets.",
            "dataset_id",
        )
    try:
        request.check_columns(dataset.columns)
    except SpecError as error:
        raise InvalidTable(str(error), error.field) from None
    start = request.start_from
    if start is not None:
        version = _lock_version(session, start.model, start.version)
        if version is None or parent is None:
            raise UnknownModel(
                f"start_from: there is no version {start.version} of the model "
                f"{start.model!r}; `GET /v1/models` lists the versions.",
                "start_from",
            )
        names = [column["name"] for column in dataset.columns]
        parent.check_continuation(request, names)
    return dataset
