"""The records of published versions in the database."""

import contextlib
import hashlib
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.shared.database.tables import Job, Label, ModelVersion
from service.shared.store import Store, StoreError
from tfbbb.export.manifest import MANIFEST_PATH, Manifest, ManifestError

# The label that moves by itself.
LATEST = "latest"


class MadeLatest(NamedTuple):
    """A version that somebody has made `latest`.

    Attributes:
        number: The version.
        newest: The newest version that there was then; later ones take its place.
    """

    number: int
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
    """Finds the version of a job whose process stopped before it recorded it.

    Adds the record in the caller's transaction, which has locked the job.
    """
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
