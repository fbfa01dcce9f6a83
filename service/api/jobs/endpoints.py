"""`/v1/jobs`: submit, list, follow, cancel and retry trainings."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from service.api.http.errors import as_json, responses
from service.api.http.scoped_route import ScopedRoute
from service.api.jobs import event_stream, repository, submission
from service.api.jobs.schemas import (
    Id,
    JobId,
    JobPage,
    JobRequest,
    JobStatus,
    JobSummary,
    Name,
)
from service.api.keys.caller import Training
from service.api.pagination import Cursor
from service.api.state import ServiceState, State
from service.shared.database.tables import Job
from service.shared.errors import (
    IdempotencyKeyReused,
    InvalidRequest,
    JobStateConflict,
    QueueFull,
    UnknownDataset,
    UnknownJob,
)
from service.shared.files import JobFiles
from service.shared.job_state import ENDED, JobState

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=ScopedRoute)

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="A name of this request, anything unique: sent again with the "
        "same body, it gets the job that was made the first time, with status 200.",
    ),
]
_LOG_BYTES = 16 * 2**10


@router.post(
    "",
    status_code=201,
    summary="Train a model",
    responses={
        200: {"model": JobStatus, "description": "The job that was made before."},
        **responses(
            InvalidRequest,
            UnknownDataset,
            IdempotencyKeyReused,
            QueueFull,
        ),
    },
)
def submit_job(
    state: State,
    caller: Training,
    request: JobRequest,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> JobStatus:
    """Queues a job. What can be checked without training is checked first."""
    job, is_new = submission.submit(state.queue, caller, request, idempotency_key)
    response.status_code = 201 if is_new else 200
    return _status(state, job)


@router.get("", summary="List jobs", responses=responses(InvalidRequest))
def list_jobs(
    state: State,
    _: Training,
    job_state: Annotated[JobState | None, Query(alias="state")] = None,
    name: Annotated[Name | None, Query(description="Of the model.")] = None,
    dataset_id: Annotated[Id | None, Query()] = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> JobPage:
    """Lists jobs, newest first; `next_cursor` of the answer gives the next page."""
    with state.database.reading() as session:
        jobs, following = repository.page(
            session,
            state=job_state,
            name=name,
            dataset_id=dataset_id,
            before=None if cursor is None else Cursor.parse(cursor),
            limit=limit,
        )
    return JobPage(
        jobs=[JobSummary.from_row(job) for job in jobs],
        next_cursor=None if following is None else str(following),
    )


@router.get(
    "/{id}", summary="Look at a job", responses=responses(InvalidRequest, UnknownJob)
)
async def get_job(state: State, _: Training, id: JobId) -> JobStatus:
    """Says how far a job is, and what has become of it."""
    status = await asyncio.to_thread(_read_status, state, id)
    if status.version is not None:
        await state.latest_version.wait_for(status.name, status.version)
    return status


@router.post(
    "/{id}:cancel",
    summary="Cancel a job",
    responses=responses(InvalidRequest, UnknownJob),
)
def cancel_job(state: State, _: Training, id: JobId) -> JobStatus:
    """Cancels a job: at once if it waits, else as soon as its step is done.

    A job that has ended stays as it is.
    """
    with state.database.writing() as session:
        job = repository.get_job(session, id, to_change=True)
        state.queue.cancel(session, job)
    return _status(state, job)


@router.post(
    "/{id}:retry",
    summary="Try a job again",
    responses=responses(InvalidRequest, UnknownJob, JobStateConflict, QueueFull),
)
def retry_job(state: State, caller: Training, id: JobId) -> JobStatus:
    """Queues a failed or cancelled job again, under the same id."""
    with state.database.writing() as session:
        submission.check_quota(state.queue, session, caller)
        # Before the job itself: so does who deletes a dataset.
        submission.lock_inputs(session, repository.get_job(session, id))
        job = repository.get_job(session, id, to_change=True)
        if job.state not in (JobState.FAILED, JobState.CANCELLED):
            raise JobStateConflict(
                "Only a failed or cancelled job can be tried again. "
                f"Received: job {id}, which is {job.state}"
            )
        state.queue.retry(session, job)
    return _status(state, job)


@router.delete(
    "/{id}",
    status_code=204,
    summary="Forget a job",
    responses=responses(InvalidRequest, UnknownJob, JobStateConflict),
)
def delete_job(state: State, _: Training, id: JobId) -> None:
    """Removes a job that has ended, its events and its log. Its model stays."""
    with state.database.writing() as session:
        job = repository.get_job(session, id, to_change=True)
        if job.state not in ENDED:
            raise JobStateConflict(
                "Only a job that has ended can be deleted; cancel it first. "
                f"Received: job {id}, which is {job.state}"
            )
        # First: a process that stops in between leaves a job that can be deleted anew.
        JobFiles(state.settings, id).remove()
        session.delete(job)


def last_seen(
    after: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    last_event_id: Annotated[int | None, Header(ge=0, lt=2**31)] = None,
) -> int:
    """The number of the last event that a listener knows."""
    return after if last_event_id is None else last_event_id


LastSeen = Annotated[int, Depends(last_seen)]


def job_to_follow(state: State, _: Training, id: JobId, sequence: LastSeen) -> str:
    """The id of a job with more events, looked up before the answer begins."""
    with state.database.reading() as session:
        job = repository.get_job(session, id)
        event_stream.check_more_may_follow(session, job, sequence)
        return job.id


@router.get(
    "/{id}/events",
    summary="Follow a job",
    response_class=EventSourceResponse,
    responses={
        204: {"description": "The job has ended, and no event follows."},
        **as_json(responses(InvalidRequest, UnknownJob)),
    },
)
async def follow_job(
    state: State,
    caller: Training,
    id: Annotated[str, Depends(job_to_follow)],
    sequence: LastSeen,
) -> AsyncIterator[ServerSentEvent]:
    """Sends the events of a job as they happen, until it has ended.

    `state` says in which state it is from now on, `epoch` how far it is, with its
    figures. Ids count from 1: a client that sends the last one it has seen as
    `Last-Event-ID`, as browsers do by themselves, or as `after`, misses none.
    """
    async for event in event_stream.follow(
        state.database, caller, id, sequence, state.stopping
    ):
        if "version" in event.data:
            await state.latest_version.wait_for(
                event.data["name"], event.data["version"]
            )
        yield event


def _read_status(state: ServiceState, id: str) -> JobStatus:
    with state.database.reading() as session:
        return _status(state, repository.get_job(session, id))


def _status(state: ServiceState, job: Job) -> JobStatus:
    log = JobFiles(state.settings, job.id).log_tail(_LOG_BYTES)
    return JobStatus.from_job_and_log(job, log)
