"""The table of what the service removes by itself.

Each kind finds what its settings no longer keep, and removes one of these things
safely: a removal checks again, under the lock of the row, that nothing needs the thing,
so that several services may remove at the same time. A process that is killed in
between leaves nothing half removed that the next removal, or the next start, would not
finish.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Text, cast, delete, func, select
from sqlalchemy.orm import InstrumentedAttribute

from service.api.datasets import repository as datasets
from service.api.jobs import repository as jobs
from service.api.models.deletion import remove_version
from service.api.models.repository import needed_versions, version_times
from service.api.state import ServiceState
from service.shared.database.tables import (
    AuditEntry,
    Dataset,
    Event,
    Job,
)
from service.shared.files import JobFiles, directory_bytes, jobs_with_log
from service.shared.job_state import ENDED

_DAY = 86400.0


class Item(NamedTuple):
    """A thing that is not kept any longer.

    Args:
        subject: Its id, or its name.
        num_bytes: Bytes that its removal frees.
        since: When it was made, or ended.
    """

    subject: str
    num_bytes: int
    since: float


@dataclass(frozen=True)
class Kind:
    """A kind of things, and the settings that say which of them are kept.

    Args:
        name: What they are.
        settings: Names of the settings; nothing is removed while all of them are None.
        find: Finds what is not kept any longer, at a time of the database.
        remove: Removes one thing. Does nothing if it is gone already; raises a
            `ServiceError` if something needs it.
    """

    name: str
    settings: tuple[str, ...]
    find: Callable[[ServiceState, float], Awaitable[list[Item]]]
    remove: Callable[[ServiceState, Item], Awaitable[None]]

    def limits(self, state: ServiceState) -> Mapping[str, float | None]:
        """Returns the values of the settings, by environment variable."""
        settings = state.settings
        return {settings.variable(n): getattr(settings, n) for n in self.settings}


def _in_threads(
    name: str,
    setting: str,
    find: Callable[[ServiceState, float], list[Item]],
    remove: Callable[[ServiceState, Item], None],
) -> Kind:
    """Creates a kind of things that are kept for the days of one setting.

    `find` gets the time before which they are not kept.
    """

    async def found(state: ServiceState, now: float) -> list[Item]:
        kept = getattr(state.settings, setting)
        if kept is None:
            return []
        return await asyncio.to_thread(find, state, now - kept * _DAY)

    async def removed(state: ServiceState, item: Item) -> None:
        await asyncio.to_thread(remove, state, item)

    return Kind(name, (setting,), found, removed)


async def _find_versions(state: ServiceState, now: float) -> list[Item]:
    """Finds versions that nothing needs, if both limits leave them out."""
    newest, days = state.settings.keep_versions, state.settings.version_days
    if newest is None and days is None:
        return []
    models = (await state.models.models()).models
    made = await asyncio.to_thread(version_times, state.database)
    needed = await asyncio.to_thread(needed_versions, state.database)
    found = []
    for model in models:
        latest = model.labels.get("latest")
        if latest is None:
            continue  # Until one answers, any of them may be needed.
        numbers = sorted((int(one.version) for one in model.versions), reverse=True)
        for number in numbers[newest or 0 :]:
            version = (model.name, number)
            if version not in made or version in needed or number == int(latest):
                continue
            if days is None or made[version] < now - days * _DAY:
                path = state.queue.store.models / model.name / str(number)
                size = await asyncio.to_thread(directory_bytes, path)
                found.append(Item(f"{model.name}/{number}", size, made[version]))
    return found


async def _remove_version(state: ServiceState, item: Item) -> None:
    name, _, number = item.subject.rpartition("/")
    await remove_version(state, name, int(number))


def _find_jobs(state: ServiceState, before: float) -> list[Item]:
    with state.database.reading() as session:
        ended = session.execute(
            select(Job.id, Job.finished_at).where(
                Job.state.in_(ENDED), Job.finished_at < before
            )
        ).all()
        events = _event_bytes(state, before, Job.id.is_not(None))
    return [
        Item(
            job_id,
            events.get(job_id, 0)
            + directory_bytes(JobFiles(state.settings, job_id).directory),
            finished_at,
        )
        for job_id, finished_at in ended
        if finished_at is not None
    ]


def _remove_job(state: ServiceState, item: Item) -> None:
    jobs.delete_job(
        state.database, state.settings, item.subject, finished_at=item.since
    )


def _find_job_logs(state: ServiceState, before: float) -> list[Item]:
    """Finds logs on this machine, also those of jobs deleted elsewhere, and events.

    The logs of jobs that go themselves are counted with them.
    """
    log_days, job_days = state.settings.job_log_days, state.settings.job_days
    going = float("-inf")
    if log_days is not None and job_days is not None:
        going = before + (log_days - job_days) * _DAY
    epochs = _event_bytes(state, before, Event.type == "epoch")
    with state.database.reading() as session:
        finished: dict[str, float | None] = {
            job_id: finished_at if job_state in ENDED else None
            for job_id, job_state, finished_at in session.execute(
                select(Job.id, Job.state, Job.finished_at)
            )
        }
    found = []
    for job_id in sorted(jobs_with_log(state.settings) | epochs.keys()):
        log = JobFiles(state.settings, job_id).log
        stat = log.stat() if log.exists() else None
        ended = finished.get(job_id, None if stat is None else stat.st_mtime)
        goes_itself = job_id in finished and ended is not None and ended < going
        if ended is not None and ended < before and not goes_itself:
            size = (stat.st_size if stat else 0) + epochs.get(job_id, 0)
            found.append(Item(job_id, size, ended))
    return found


def _remove_job_log(state: ServiceState, item: Item) -> None:
    files = JobFiles(state.settings, item.subject)
    with state.database.writing() as session:
        job = session.get(Job, item.subject, with_for_update=True)
        if job is not None and (
            job.state not in ENDED or job.finished_at != item.since
        ):
            return  # It was retried meanwhile.
        files.remove_log()
        session.execute(
            delete(Event).where(Event.job_id == item.subject, Event.type == "epoch")
        )


def _event_bytes(
    state: ServiceState, before: float, condition: ColumnElement[bool]
) -> dict[str, int]:
    """Returns the bytes of events of jobs that ended before a time, by job."""
    size = func.sum(func.length(cast(Event.data, Text)))
    with state.database.reading() as session:
        rows = session.execute(
            select(Event.job_id, size)
            .join(Job, Job.id == Event.job_id)
            .where(Job.state.in_(ENDED), Job.finished_at < before, condition)
            .group_by(Event.job_id)
        )
        return {job_id: int(num_bytes) for job_id, num_bytes in rows}


def _find_datasets(state: ServiceState, before: float) -> list[Item]:
    with state.database.reading() as session:
        rows = session.execute(
            select(Dataset.id, Dataset.sha256, Dataset.num_bytes, datasets.UPLOADED_AT)
            .where(datasets.is_unused_since(before))
            .order_by(Dataset.created_at)
        ).all()
        shared = set(
            session.scalars(
                select(Dataset.sha256).group_by(Dataset.sha256).having(func.count() > 1)
            )
        )
    return [
        Item(dataset_id, 0 if sha256 in shared else num_bytes, uploaded_at)
        for dataset_id, sha256, num_bytes, uploaded_at in rows
    ]


def _remove_dataset(state: ServiceState, item: Item) -> None:
    state.datasets.delete(item.subject, unused_since=item.since)


def _find_rows(
    state: ServiceState,
    before: float,
    *,
    created_at: InstrumentedAttribute[float],
    sizes: tuple[InstrumentedAttribute[Any], ...],
) -> list[Item]:
    """Finds the rows of a table that are too old, as one thing."""
    size = sum(func.length(cast(column, Text)) for column in sizes)
    with state.database.reading() as session:
        count, num_bytes = session.execute(
            select(func.count(), func.sum(size)).where(created_at < before)
        ).one()
    # The removal takes those of the same time.
    return [Item(f"{count} rows", int(num_bytes or 0), before)] if count else []


def _remove_rows(
    state: ServiceState, item: Item, *, created_at: InstrumentedAttribute[float]
) -> None:
    with state.database.writing() as session:
        session.execute(delete(created_at.class_).where(created_at < item.since))


def _rows(
    name: str,
    setting: str,
    created_at: InstrumentedAttribute[float],
    *sizes: InstrumentedAttribute[Any],
) -> Kind:
    """Creates the kind of a table's rows."""
    find = partial(_find_rows, created_at=created_at, sizes=sizes)
    remove = partial(_remove_rows, created_at=created_at)
    return _in_threads(name, setting, find, remove)


KINDS = (
    Kind(
        "versions", ("keep_versions", "version_days"), _find_versions, _remove_version
    ),
    _in_threads("jobs", "job_days", _find_jobs, _remove_job),
    _in_threads("job logs", "job_log_days", _find_job_logs, _remove_job_log),
    _in_threads("datasets", "dataset_days", _find_datasets, _remove_dataset),
    _rows("audit entries", "audit_days", AuditEntry.created_at, AuditEntry.details),
)
