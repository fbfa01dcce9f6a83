"""The records of published versions in the database."""

import hashlib
from pathlib import Path

from sqlalchemy.orm import Session

from service.shared.database.tables import Job, ModelVersion
from service.shared.store import Store, StoreError
from tfbbb.export.manifest import MANIFEST_PATH, Manifest, ManifestError


def published_version(
    session: Session, store: Store, job: Job, now: float
) -> int | None:
    """Finds the version of a job whose process stopped before it recorded it.

    Adds the record in the caller's transaction, which has locked the job.

    Args:
        session: The transaction.
        store: The store of the versions.
        job: The job.
        now: The time of the database, which becomes that of the version.
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
