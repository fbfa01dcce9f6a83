"""The events of a job as they happen, as server-sent events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

from fastapi import Request, Response
from fastapi.sse import ServerSentEvent
from sqlalchemy.orm import Session

from service.api.http.outages import DATABASE_OUTAGES, without_statement
from service.api.keys.caller import Caller
from service.api.keys.repository import is_key_usable
from service.shared import job_events as events
from service.shared.database import Database, timestamp
from service.shared.database.tables import Event, Job
from service.shared.errors import InvalidRequest
from service.shared.job_state import ENDED

logger = logging.getLogger(__name__)

_AT_ONCE = 200
# A new listener wants to see the job start; later a look per second is enough.
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0


class NothingFollows(Exception):
    """The listener has the last event of a job that has ended."""


async def answer_that_nothing_follows(request: Request, error: Exception) -> Response:
    """Keeps browsers, which come back after each end of a stream, from doing so."""
    return Response(status_code=204)


def check_more_may_follow(session: Session, job: Job, sequence: int) -> None:
    """Makes sure that events will come after the one of this number.

    Raises:
        NothingFollows: If the job has ended, and it was the last.
        InvalidRequest: If there is no such event: those to come have lower numbers.
    """
    last = events.last(session, job.id)
    if sequence > last:
        raise InvalidRequest(
            f"The latest event of the job {job.id} is {last}; send the id of one of "
            f"its events, or none to get all. Received: {sequence}"
        )
    if job.state in ENDED and sequence == last:
        raise NothingFollows


async def follow(
    database: Database,
    caller: Caller,
    job_id: str,
    sequence: int,
    stopping: asyncio.Event,
) -> AsyncIterator[ServerSentEvent]:
    """Gives the events after one, and those to come until the job has ended.

    Each listener looks for itself: whichever process wrote an event, all see it. While
    the database does not answer they wait: the answer has begun, and can't say so.

    Args:
        database: Where events are.
        caller: Who listens, for as long as its key is good.
        job_id: The job.
        sequence: The number of the last event that the listener knows.
        stopping: Set when the service stops, which ends the stream: the listener
            goes on with another process, or with this one when it is back.
    """
    pause, lost = _FIRST_PAUSE, False
    while not stopping.is_set():
        try:
            found, ended = await asyncio.to_thread(
                _next_events, database, caller, job_id, sequence
            )
        except DATABASE_OUTAGES as error:
            if not lost:
                why = without_statement(error)
                logger.warning("can't look for events of job %s: %s", job_id, why)
            found, ended = [], False
            lost = True
        else:
            lost = False
        for event in found:
            sequence = event.sequence
            yield _sse_event(event)
        if not found:
            if ended:
                return
            await _wait(stopping, pause)
            pause = min(1.5 * pause, _LONGEST_PAUSE)


def _next_events(
    database: Database, caller: Caller, job_id: str, sequence: int
) -> tuple[Sequence[Event], bool]:
    """The next events, and whether the last of them ends the stream."""
    with database.reading() as session:
        if not is_key_usable(database, session, caller.key_id):
            return (), True
        job = session.get(Job, job_id)
        ended = job is None or job.state in ENDED
        return events.after(session, job_id, sequence, _AT_ONCE), ended


def _sse_event(event: Event) -> ServerSentEvent:
    return ServerSentEvent(
        id=str(event.sequence),
        event=event.type,
        data={**event.data, "at": timestamp(event.created_at)},
    )


async def _wait(stopping: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stopping.wait(), seconds)
    except TimeoutError:
        return
