"""Removes what the settings no longer keep: `tfbbb prune`, and `serve` once a day.

A removal checks again, under the lock of the row, that nothing needs the thing, so that
several services may remove at the same time. A process that is killed in between leaves
nothing half removed that the next removal, or the next start, would not finish.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sqlalchemy import delete, func, select

from service.api.datasets.store import UPLOADED_AT, DatasetStore, is_unused_since
from service.api.jobs.repository import delete_job
from service.shared.data_directory import free_reserve, write_reserve
from service.shared.database import Actor, Database, acting
from service.shared.database.tables import (
    AuditEntry,
    Dataset,
    Event,
    Job,
    Label,
    ModelVersion,
)
from service.shared.errors import ServiceError
from service.shared.files import JobFiles, directory_bytes, jobs_with_log
from service.shared.job_state import ENDED, UNFINISHED
from service.shared.settings import Settings
from service.shared.store import Store, open_store
from service.shared.versions import delete_version, finish_deletions, latest_version
from tfbbb.export.manifest import Manifest, ManifestError

logger = logging.getLogger(__name__)

_DAY = 86400.0
_SECONDS_TO_START, _PERIOD = 3600.0, _DAY


class Item(NamedTuple):
    """A thing that is not kept any longer."""

    kind: str
    subject: str
    # Of its files.
    num_bytes: int
    # When it was made, or ended.
    since: float


@dataclass(frozen=True)
class _Service:
    """What a service stores, and the settings that say what is kept of it."""

    database: Database
    settings: Settings
    store: Store
    now: float

    def before(self, setting: str) -> float | None:
        """Returns the time before which a setting in days keeps nothing."""
        days = getattr(self.settings, setting)
        return None if days is None else self.now - days * _DAY


# Each thing that is not kept, and what removes it.
_Found = Iterator[tuple[Item, Callable[[], None]]]


def prune(database: Database, settings: Settings, *, dry_run: bool) -> list[Item]:
    """Removes what the settings no longer keep, and returns it.

    What only this removal makes superfluous, such as the dataset of a job, is found by
    the next one, so that a dry run shows it before it goes.
    """
    with database.reading() as session:
        now = database.now(session)
    service = _Service(database, settings, open_store(settings), now)
    # All are found first, so that what goes is what a dry run shows.
    found = list(_find_versions(service))
    for setting, find in _BY_AGE.items():
        if (before := service.before(setting)) is not None:
            found += find(service, before)
    if dry_run:
        return [item for item, _ in found]
    free_reserve(settings)
    with acting(Actor("retention")):
        removed = [item for item, remove in found if _is_removed(item, remove)]
    write_reserve(settings)
    return removed


async def tend(
    database: Database,
    settings: Settings,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Removes once a day, for ever; the first time an hour after the start."""
    await sleep(_SECONDS_TO_START)
    while True:
        try:
            removed = await asyncio.to_thread(prune, database, settings, dry_run=False)
            for item in removed:
                # What is gone must be in the log, whatever its level.
                logger.warning("removed the %s %s", item.kind, item.subject)
        except Exception:
            logger.exception("could not remove what is not kept any longer")
        await sleep(_PERIOD)


def _is_removed(item: Item, remove: Callable[[], None]) -> bool:
    try:
        remove()
    except (ServiceError, OSError) as error:
        # Something came to need it, another service was faster, or the disk fails.
        logger.info("kept the %s %s: %s", item.kind, item.subject, error)
        return False
    return True


def _find_versions(service: _Service) -> _Found:
    """Finds versions that nothing needs, if both limits leave them out."""
    newest, before = service.settings.keep_versions, service.before("version_days")
    if newest is None and before is None:
        return
    columns = (ModelVersion.name, ModelVersion.number, ModelVersion.created_at)
    with service.database.reading() as session:
        rows = select(*columns).where(ModelVersion.deleted_at.is_(None))
        made = {(name, number): at for name, number, at in session.execute(rows)}
        labels = session.execute(select(Label.name, Label.number))
        needed = {(name, number) for name, number in labels}
        specs = session.scalars(select(Job.spec).where(Job.state.in_(UNFINISHED)))
        starts = [spec.get("start_from") for spec in specs]
        needed |= {(s["model"], int(s["version"])) for s in starts if s}
        latest = {
            name: latest_version(session, service.store, name)
            for name in {name for name, _ in made}
        }
    for name, number in sorted(latest.items()):
        going = [
            one
            for one in service.store.numbers(name)[::-1][newest or 0 :]
            if (name, one) in made.keys() - needed
            and one != number
            and (before is None or made[name, one] < before)
        ]
        # Until `latest` can answer, any of the others may be needed.
        if number is not None and going and _is_whole(service.store, name, number):
            for one in reversed(going):
                size = directory_bytes(service.store.models / name / str(one))
                item = Item("version", f"{name}/{one}", size, made[name, one])
                yield item, partial(_remove_version, service, name, one)


def _is_whole(store: Store, name: str, number: int) -> bool:
    try:
        directory = store.version(name, number)
        Manifest.read(directory).verify(directory)
    except (ManifestError, OSError) as error:
        logger.warning("kept all versions of %r, whose latest fails: %s", name, error)
        return False
    return True


def _remove_version(service: _Service, name: str, number: int) -> None:
    delete_version(service.database, service.store, name, number)
    finish_deletions(service.database, service.store)


def _find_jobs(service: _Service, before: float) -> _Found:
    with service.database.reading() as session:
        ended = session.execute(
            select(Job.id, Job.finished_at).where(
                Job.state.in_(ENDED), Job.finished_at < before
            )
        ).all()
    for job_id, at in ended:
        assert at is not None  # Such a job is not before any time.
        size = directory_bytes(JobFiles(service.settings, job_id).directory)
        remove = partial(delete_job, service.database, service.settings, job_id, at)
        yield Item("job", job_id, size, at), remove


def _find_job_logs(service: _Service, before: float) -> _Found:
    """Finds logs on this machine, also those of jobs deleted elsewhere, and epochs."""
    with service.database.reading() as session:
        finished = {
            job_id: at if state in ENDED else None
            for job_id, state, at in session.execute(
                select(Job.id, Job.state, Job.finished_at)
            )
        }
        epochs = select(Event.job_id).where(Event.type == "epoch").distinct()
        with_epochs = set(session.scalars(epochs))
    # The log of a job that goes itself goes with it.
    going = service.before("job_days") or -math.inf
    for job_id in sorted(jobs_with_log(service.settings) | with_epochs):
        log = JobFiles(service.settings, job_id).log
        stat = log.stat() if log.exists() else None
        at = finished.get(job_id, stat.st_mtime if stat else None)
        if at is not None and at < before and not (job_id in finished and at < going):
            item = Item("log of job", job_id, stat.st_size if stat else 0, at)
            yield item, partial(_remove_job_log, service, job_id, at)


def _remove_job_log(service: _Service, job_id: str, ended_at: float) -> None:
    with service.database.writing() as session:
        job = session.get(Job, job_id, with_for_update=True)
        if job is not None and (job.state not in ENDED or job.finished_at != ended_at):
            return  # It was retried meanwhile.
        JobFiles(service.settings, job_id).remove_log()
        session.execute(
            delete(Event).where(Event.job_id == job_id, Event.type == "epoch")
        )


def _find_datasets(service: _Service, before: float) -> _Found:
    store = DatasetStore(service.settings, service.database, service.store)
    with service.database.reading() as session:
        rows = session.execute(
            select(Dataset.id, Dataset.num_bytes, UPLOADED_AT).where(
                is_unused_since(before)
            )
        ).all()
    for dataset_id, num_bytes, at in rows:
        remove = partial(store.delete, dataset_id, unused_since=at)
        yield Item("dataset", dataset_id, num_bytes, at), remove


def _find_audit(service: _Service, before: float) -> _Found:
    """Finds the entries that are too old, as one thing."""
    old = select(func.count()).where(AuditEntry.created_at < before)
    with service.database.reading() as session:
        count = session.scalar(old)
    if count:
        item = Item("audit", f"{count} entries", 0, before)
        yield item, partial(_remove_audit, service, before)


def _remove_audit(service: _Service, before: float) -> None:
    with service.database.writing() as session:
        session.execute(delete(AuditEntry).where(AuditEntry.created_at < before))


# By the setting of the days for which they are kept.
_BY_AGE: dict[str, Callable[[_Service, float], _Found]] = {
    "job_days": _find_jobs,
    "job_log_days": _find_job_logs,
    "dataset_days": _find_datasets,
    "audit_days": _find_audit,
}
