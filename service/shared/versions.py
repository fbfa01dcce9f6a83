"""The records of published versions in the database, and how versions are deleted."""

import contextlib
import hashlib
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import BigInteger, cast, func, select
from sqlalchemy.orm import Session

from service.shared.database import Database
from service.shared.database.tables import Job, Label, ModelVersion
from service.shared.errors import VersionInUse
from service.shared.job_state import UNFINISHED
from service.shared.store import Store, StoreError
from tfbbb.export.manifest import MANIFEST_PATH, Manifest, ManifestError

# The label that moves by itself.
LATEST = "latest"


class MadeLatest(NamedTuple):
    """A version that somebody has made `latest`."""

    number: int
    # The newest version that there was then; later ones take its place.
    newest: int


def made_latest(session: Session) -> dict[str, MadeLatest]:
    """Returns the versions that somebody has made `latest`, by model."""
    columns = (Label.name, Label.number, func.max(ModelVersion.number))
    made = (
        select(*columns)
        .join(ModelVersion, ModelVersion.name == Label.name)
        .where(Label.label == LATEST, ModelVersion.created_at <= Label.moved_at)
        .group_by(Label.name, Label.number)
    )
    return {name: MadeLatest(*found) for name, *found in session.execute(made)}


def may_be_latest(number: int, becomes_latest: bool, made: MadeLatest | None) -> bool:
    """Returns whether a version may be `latest`, of which the newest is."""
    if made is None:
        return becomes_latest
    return number == made.number or (becomes_latest and number > made.newest)


def latest_version(session: Session, store: Store, name: str) -> int | None:
    """Returns the number of the version that is `latest`; None if there is none."""
    made = made_latest(session).get(name)
    for number in reversed(store.numbers(name)):
        with contextlib.suppress(ManifestError, FileNotFoundError):
            manifest = Manifest.from_json(store.manifest(name, number))
            if may_be_latest(number, manifest.becomes_latest, made):
                return number
    return None


def published_version(
    session: Session, store: Store, job: Job, now: float
) -> int | None:
    """Finds and records the version of a job whose process stopped before it did."""
    for number in store.numbers(job.name):
        if session.get(ModelVersion, (job.name, number)) is not None:
            continue
        try:
            manifest = store.manifest(job.name, number)
            lineage = Manifest.from_json(manifest).lineage
        except StoreError:
            raise
        except (ManifestError, OSError):
            continue
        if lineage is not None and lineage.get("job_id") == job.id:
            add_version(session, job, number, manifest, now)
            return number
    return None


def manifest_digest(directory: Path) -> str:
    """Returns the SHA-256 of a version's manifest, in hexadecimal."""
    return hashlib.sha256((directory / MANIFEST_PATH).read_bytes()).hexdigest()


def add_version(
    session: Session, job: Job, number: int, manifest: bytes, now: float
) -> None:
    """Records a version that a job published, in the caller's transaction."""
    session.add(
        ModelVersion(
            name=job.name,
            number=number,
            digest=hashlib.sha256(manifest).hexdigest(),
            job_id=job.id,
            lineage=dict(Manifest.from_json(manifest).lineage or {}),
            created_at=now,
        )
    )


def delete_version(database: Database, store: Store, name: str, number: int) -> None:
    """Records that a version is deleted, then removes its files."""
    with database.writing() as session:
        version = session.get(ModelVersion, (name, number), with_for_update=True)
        _check_unused(session, name, number)
        if version is not None and version.deleted_at is None:
            version.deleted_at = database.now(session)
    store.remove_version(name, number)


def finish_deletions(database: Database, store: Store) -> None:
    """Removes what interrupted deletions have left."""
    deleted = select(ModelVersion).where(ModelVersion.deleted_at.is_not(None))
    with database.reading() as session:
        versions = session.scalars(deleted).all()
    for version in versions:
        with contextlib.suppress(FileNotFoundError):
            manifest = store.manifest(version.name, version.number)
            # Somebody may have copied another version into its place.
            if hashlib.sha256(manifest).hexdigest() == version.digest:
                store.remove_version(version.name, version.number)


def _check_unused(session: Session, name: str, number: int) -> None:
    labels = session.scalars(
        select(Label.label).where(Label.name == name, Label.number == number)
    ).all()
    if labels:
        raise VersionInUse(
            f"Version {number} of the model {name!r} has the labels "
            f"{', '.join(map(repr, labels))}; move or delete them first."
        )
    start = Job.spec["start_from"]
    jobs = session.scalars(
        select(Job.id).where(
            Job.state.in_(UNFINISHED),
            start["model"].as_string() == name,
            cast(start["version"].as_string(), BigInteger) == number,
        )
    ).all()
    if jobs:
        raise VersionInUse(
            f"The jobs {', '.join(jobs)} start from version {number} of the model "
            f"{name!r}; cancel the jobs, or wait until they end."
        )
