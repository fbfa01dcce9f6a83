"""`/v1/jobs`: submit, list, follow, cancel and retry jobs."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Header, Query, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from sqlalchemy import select

from service.api.http.routes import scoped_router
from service.api.jobs import event_stream, repository
from service.api.jobs.schemas import (
    Id,
    JobId,
    JobPage,
    JobRequest,
    JobStatus,
    JobSummary,
    Name,
)
from service.api.keys.keyring import Training
from service.api.pagination import NextCursor, PageLimit, page
from service.api.state import ServiceState, State
from service.shared.database.tables import Job
from service.shared.errors import JobStateConflict, Unavailable, UnknownModel
from service.shared.files import JobFiles
from service.shared.job_state import JobState

logger = logging.getLogger(__name__)

router = scoped_router("/v1/jobs", "jobs")

IdempotencyKey = Annotated[str | None, Header(min_length=1, max_length=255)]
_LOG_BYTES = 16 * 2**10
_SECONDS_TO_LOAD = 10.0


@router.post(
    "",
    status_code=201,
    summary="Train a model",
    responses={
        200: {"model": JobStatus, "description": "The job of the earlier request."}
    },
)
def submit_job(
    state: State,
    caller: Training,
    request: JobRequest,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> JobStatus:
    """Validates a job against its dataset, and queues it.

    A repeated request with the same `Idempotency-Key` and body returns the first job.
    """
    job, is_new = repository.submit(state.queue, caller, request, idempotency_key)
    response.status_code = 201 if is_new else 200
    return _status(state, job)


@router.get("", summary="List jobs")
def list_jobs(
    state: State,
    _: Training,
    job_state: Annotated[JobState | None, Query(alias="state")] = None,
    name: Annotated[Name | None, Query(description="Name of the model.")] = None,
    dataset_id: Annotated[Id | None, Query()] = None,
    cursor: NextCursor = None,
    limit: PageLimit = 50,
) -> JobPage:
    """Lists jobs, newest first; pass `next_cursor` to get the next page."""
    wanted = {"state": job_state, "name": name, "dataset_id": dataset_id}
    given = {column: value for column, value in wanted.items() if value is not None}
    with state.database.reading() as session:
        query = select(Job).filter_by(**given)
        jobs, following = page(session, query, Job, cursor, limit)
        judgements = repository.find_judgements(session, jobs)
    return JobPage(
        jobs=[JobSummary.from_row(job, judgements.get(job.id)) for job in jobs],
        next_cursor=following,
    )


@router.get("/{id}", summary="Describe a job")
async def get_job(state: State, _: Training, id: JobId) -> JobStatus:
    """Returns the progress of a job, and its result."""
    status = await asyncio.to_thread(_read_status, state, id)
    if status.version is not None:
        await _until_served(state, status.name, status.version)
    return status


@router.post("/{id}:cancel", summary="Cancel a job")
def cancel_job(state: State, _: Training, id: JobId) -> JobStatus:
    """Cancels a job: a queued job at once, a running job after its current step.

    Does not change a job that has ended.
    """
    with state.database.writing() as session:
        job = repository.get_job(session, id, to_change=True)
        state.queue.cancel(session, job)
    return _status(state, job)


@router.post("/{id}:retry", summary="Retry a job")
def retry_job(state: State, caller: Training, id: JobId) -> JobStatus:
    """Queues a failed or cancelled job again, under the same id."""
    with state.database.writing() as session:
        repository.check_quota(state.queue, session, caller)
        # Lock the dataset before the job, as the deletion of a dataset does.
        repository.lock_inputs(session, repository.get_job(session, id))
        job = repository.get_job(session, id, to_change=True)
        if job.state not in (JobState.FAILED, JobState.CANCELLED):
            raise JobStateConflict(
                "Only a failed or cancelled job can be retried. "
                f"Received: job {id}, which is {job.state}"
            )
        state.queue.retry(session, job)
    return _status(state, job)


@router.delete("/{id}", status_code=204, summary="Delete a job")
def delete_job(state: State, _: Training, id: JobId) -> None:
    """Deletes a job that has ended, its events and its log, but not its model."""
    repository.delete_job(state.database, state.settings, id)


def get_place(
    state: State,
    _: Training,
    id: JobId,
    after: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    last_event_id: Annotated[int | None, Header(ge=0, lt=2**31)] = None,
) -> int:
    """Returns the last event that the client has, before the response begins."""
    sequence = after if last_event_id is None else last_event_id
    with state.database.reading() as session:
        job = repository.get_job(session, id)
        event_stream.check_more_events(session, job, sequence)
    return sequence


@router.get(
    "/{id}/events",
    summary="Follow a job",
    response_class=EventSourceResponse,
    responses={
        204: {"description": "The job has ended, and no further event follows."}
    },
)
async def follow_job(
    state: State,
    caller: Training,
    id: JobId,
    sequence: Annotated[int, Depends(get_place)],
) -> AsyncIterator[ServerSentEvent]:
    """Streams the events of a job until the job ends.

    A `state` event gives the new state, an `epoch` event the progress with its metrics,
    and a `stage` event what the job is at, as `timing` of a job does, with the id of
    the event before it. Ids count from 1. To miss no event after a reconnection, send
    the last id as `Last-Event-ID`, as browsers do, or as `after`.
    """
    async for event in event_stream.follow(
        state.database, caller, id, sequence, state.stopping
    ):
        if "version" in event.data:
            await _until_served(state, event.data["name"], event.data["version"])
        yield event


async def _until_served(state: ServiceState, name: str, version: int) -> None:
    """Waits until a published version, or a newer one, is `latest`.

    Gives up after ten seconds, so that a success is always reported.
    """
    if (name, version) in state.served:
        return
    try:
        async with asyncio.timeout(_SECONDS_TO_LOAD):
            await state.models.load_newest(name)
    except (Unavailable, TimeoutError) as error:
        text = "version %d of the model %r does not serve requests yet: %r"
        logger.info(text, version, name, error)
        return
    except UnknownModel:
        pass  # It was deleted meanwhile.
    state.served.add((name, version))


def _read_status(state: ServiceState, id: str) -> JobStatus:
    with state.database.reading() as session:
        job = repository.get_job(session, id)
    return _status(state, job)


def _status(state: ServiceState, job: Job) -> JobStatus:
    log = JobFiles(state.settings, job.id).log_tail(_LOG_BYTES)
    with state.database.reading() as session:
        judgements = repository.find_judgements(session, [job])
    return JobStatus.from_row(job, judgements.get(job.id), log)
