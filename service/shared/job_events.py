"""The events of a job, in order."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.shared.database.tables import Event, Job
from tfbbb.base.types import JsonObject


def append(
    session: Session, job: Job, type_: str, data: JsonObject, now: float
) -> None:
    """Adds an event to a job that the caller has locked."""
    next_ = last(session, job.id) + 1
    session.add(
        Event(job_id=job.id, sequence=next_, type=type_, data=data, created_at=now)
    )
    # The next event queries the highest sequence.
    session.flush()


def last(session: Session, job_id: str) -> int:
    """Returns the number of the latest event of a job; 0 if there is none."""
    latest = select(func.max(Event.sequence)).where(Event.job_id == job_id)
    return session.scalar(latest) or 0


def after(
    session: Session, job_id: str, sequence: int, limit: int = 100
) -> Sequence[Event]:
    """Returns the events of a job after the event with a number, in order."""
    later = (
        select(Event)
        .where(Event.job_id == job_id, Event.sequence > sequence)
        .order_by(Event.sequence)
        .limit(limit)
    )
    return session.scalars(later).all()
