"""Streams the events of a job as server-sent events."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi import HTTPException
from fastapi.sse import ServerSentEvent
from sqlalchemy import select
from sqlalchemy.orm import Session

from service.api.http.errors import DATABASE_OUTAGES, without_statement
from service.api.jobs.schemas import timing
from service.api.keys.keyring import Caller
from service.api.keys.repository import is_usable
from service.shared import job_events as events
from service.shared.database import Database, timestamp
from service.shared.database.tables import Job, Key
from service.shared.errors import InvalidRequest
from service.shared.job_state import ENDED
from tfbbb.base.types import JsonObject

logger = logging.getLogger(__name__)

_AT_ONCE = 200
_PAUSE = 0.5
# Without an event, the client gets the stage again.
_LONGEST_SILENCE = 1.0


def check_more_events(session: Session, job: Job, sequence: int) -> None:
    """Checks that the job can have events after this one; answers 204 if it has ended.

    Browsers do not reconnect after 204.
    """
    last = events.last(session, job.id)
    if sequence > last:
        raise InvalidRequest(
            f"The latest event of the job {job.id} is {last}; send the id of an event "
            f"of this job, or no id to get all events. Received: {sequence}"
        )
    if job.state in ENDED and sequence == last:
        raise HTTPException(204)


async def follow(
    database: Database,
    caller: Caller,
    job_id: str,
    sequence: int,
    stopping: asyncio.Event,
) -> AsyncIterator[ServerSentEvent]:
    """Yields the events after a given one, and later ones until the job ends.

    A `stage` event after a second without another is not stored. While the database
    does not answer, the stream waits: its status has already been sent.
    """
    sent_at, is_lost = time.monotonic(), False
    while not stopping.is_set():
        try:
            found, ended, stage = await asyncio.to_thread(
                _next_events, database, caller, job_id, sequence
            )
            is_lost = False
        except DATABASE_OUTAGES as error:
            found, ended, stage = [], False, None
            if not is_lost:
                why = without_statement(error)
                logger.warning("could not read the events of job %s: %s", job_id, why)
            is_lost = True
        for event in found:
            yield event
            sequence, sent_at = int(event.id or 0), time.monotonic()
        if found:
            continue
        if ended:
            return
        if stage is not None and time.monotonic() > sent_at + _LONGEST_SILENCE:
            yield ServerSentEvent(id=str(sequence), event="stage", data=stage)
            sent_at = time.monotonic()
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), _PAUSE)


def _next_events(
    database: Database, caller: Caller, job_id: str, sequence: int
) -> tuple[list[ServerSentEvent], bool, JsonObject | None]:
    """Returns the next events, whether the stream ends after them, and the stage."""
    with database.reading() as session:
        now = database.now(session)
        usable = select(Key.id).where(Key.id == caller.key_id, is_usable(now))
        if caller.key_id is not None and session.scalar(usable) is None:
            return [], True, None
        job = session.get(Job, job_id)
        ended = job is None or job.state in ENDED
        stage = None if job is None else timing(job, now)
        found = [
            ServerSentEvent(
                id=str(event.sequence),
                event=event.type,
                data={**event.data, "at": timestamp(event.created_at)},
            )
            for event in events.after(session, job_id, sequence, _AT_ONCE)
        ]
    return found, ended, stage and {**stage, "at": timestamp(now)}
