"""Removes what the settings no longer keep: `tfbbb prune`, and `serve` once a day.

A removal checks again, under the lock of the row, that nothing needs the thing, so that
several services may remove at the same time.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import NamedTuple

from sqlalchemy import delete, func, select

from service.api.datasets.store import (
    UPLOADED_AT,
    DatasetStore,
    is_unused_since,
    sweep_uploads,
)
from service.api.jobs.repository import delete_job
from service.shared.data_directory import free_reserve, write_reserve
from service.shared.database import Actor, Database, acting
from service.shared.database.tables import AuditEntry, Dataset, Job, Label, ModelVersion
from service.shared.errors import ServiceError
from service.shared.files import JobFiles, directory_bytes
from service.shared.job_state import ENDED, UNFINISHED
from service.shared.settings import Settings
from service.shared.store import Store, open_store
from service.shared.versions import delete_version, finish_deletions, latest_version
from tfbbb.export.manifest import Manifest, ManifestError

logger = logging.getLogger(__name__)

_DAY = 86400.0
_SECONDS_TO_START = 3600.0


class Item(NamedTuple):
    """A thing that is not kept any longer, and when it was made or ended."""

    kind: str
    subject: str
    num_bytes: int
    since: float


# Each thing that is not kept, and what removes it.
_Found = Iterator[tuple[Item, Callable[[], None]]]


def prune(database: Database, settings: Settings, *, dry_run: bool) -> list[Item]:
    """Removes what the settings no longer keep, and returns it.

    What only this removal makes superfluous, such as the dataset of a job, is found by
    the next one, so that a dry run shows it before it goes.
    """
    with database.reading() as session:
        now = database.now(session)
    store = open_store(settings)

    def before(days: float | None) -> float:
        """Returns the time before which nothing is kept."""
        return -math.inf if days is None else now - days * _DAY

    # All are found first, so that what goes is what a dry run shows.
    found = [
        *_find_versions(database, settings, store, before(settings.version_days)),
        *_find_jobs(database, settings, before(settings.job_days)),
        *_find_datasets(database, settings, store, before(settings.dataset_days)),
        *_find_audit(database, before(settings.audit_days)),
    ]
    if dry_run:
        return [item for item, _ in found]
    free_reserve(settings)
    with acting(Actor("retention")):
        removed = [item for item, remove in found if _is_removed(item, remove)]
        finish_deletions(database, store)
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
            await asyncio.to_thread(sweep_uploads, settings.data_dir / "uploads")
            removed = await asyncio.to_thread(prune, database, settings, dry_run=False)
            for item in removed:
                # What is gone must be in the log, whatever its level.
                logger.warning("removed the %s %s", item.kind, item.subject)
        except Exception:
            logger.exception("could not remove what is not kept any longer")
        await sleep(_DAY)


def _is_removed(item: Item, remove: Callable[[], None]) -> bool:
    try:
        remove()
    except (ServiceError, OSError) as error:
        # Something came to need it, another service was faster, or the disk fails.
        logger.info("kept the %s %s: %s", item.kind, item.subject, error)
        return False
    return True


def _find_versions(
    database: Database, settings: Settings, store: Store, before: float
) -> _Found:
    """Finds versions that nothing needs, if both limits leave them out."""
    if settings.version_days is None:
        if settings.keep_versions is None:
            return
        before = math.inf
    columns = (ModelVersion.name, ModelVersion.number, ModelVersion.created_at)
    with database.reading() as session:
        rows = select(*columns).where(ModelVersion.deleted_at.is_(None))
        made = {(name, number): at for name, number, at in session.execute(rows)}
        labels = session.execute(select(Label.name, Label.number))
        needed = {(name, number) for name, number in labels}
        specs = session.scalars(select(Job.spec).where(Job.state.in_(UNFINISHED)))
        starts = [spec.get("start_from") for spec in specs]
        needed |= {(s["model"], int(s["version"])) for s in starts if s}
        latest = {
            name: latest_version(session, store, name)
            for name in {name for name, _ in made}
        }
    for name, number in sorted(latest.items()):
        others = store.numbers(name)[::-1][settings.keep_versions or 0 :]
        going = [
            one
            for one in reversed(others)
            if (name, one) in made.keys() - needed
            and one != number
            and made[name, one] < before
        ]
        # Until `latest` can answer, any of the others may be needed.
        if number is not None and going and _is_whole(store, name, number):
            for one in going:
                size = directory_bytes(store.models / name / str(one))
                item = Item("version", f"{name}/{one}", size, made[name, one])
                yield item, partial(delete_version, database, store, name, one)


def _is_whole(store: Store, name: str, number: int) -> bool:
    try:
        directory = store.version(name, number)
        Manifest.read(directory).verify(directory)
    except (ManifestError, OSError) as error:
        logger.warning("kept all versions of %r, whose latest fails: %s", name, error)
        return False
    return True


def _find_jobs(database: Database, settings: Settings, before: float) -> _Found:
    """Finds jobs that have ended, with their events and logs."""
    ended = Job.state.in_(ENDED), Job.finished_at < before
    with database.reading() as session:
        rows = session.execute(select(Job.id, Job.finished_at).where(*ended))
        found = rows.all()
    for job_id, at in found:
        size = directory_bytes(JobFiles(settings, job_id).directory)
        remove = partial(delete_job, database, settings, job_id, at)
        yield Item("job", job_id, size, at or 0.0), remove


def _find_datasets(
    database: Database, settings: Settings, store: Store, before: float
) -> _Found:
    """Finds datasets that no job has."""
    datasets = DatasetStore(settings, database, store)
    columns = (Dataset.id, Dataset.num_bytes, UPLOADED_AT)
    with database.reading() as session:
        rows = session.execute(select(*columns).where(is_unused_since(before))).all()
    for dataset_id, num_bytes, at in rows:
        remove = partial(datasets.delete, dataset_id, unused_since=at)
        yield Item("dataset", dataset_id, num_bytes, at), remove


def _find_audit(database: Database, before: float) -> _Found:
    """Finds the entries that are too old, as one thing."""
    old = AuditEntry.created_at < before

    def remove() -> None:
        with database.writing() as session:
            session.execute(delete(AuditEntry).where(old))

    with database.reading() as session:
        count = session.scalar(select(func.count()).where(old))
    if count:
        yield Item("audit", f"{count} entries", 0, before), remove
