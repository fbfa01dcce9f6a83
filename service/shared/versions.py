"""The records of published versions in the database."""

import hashlib
from datetime import datetime
from pathlib import Path

from sqlalchemy.orm import Session

from service.shared.database.tables import Job, ModelVersion
from tfbbb.export.manifest import MANIFEST_PATH, Manifest, ManifestError
from tfbbb.export.versions import version_number

# Directory beside the models, for models that are being written or deleted.
STAGING = ".staging"


def published_version(session: Session, models: Path, job: Job) -> int | None:
    """Finds the version of a job whose process stopped before it recorded it.

    Adds the record in the caller's transaction, which has locked the job.
    """
    for directory in sorted((models / job.name).glob("*")):
        number = version_number(directory)
        if number is None or session.get(ModelVersion, (job.name, number)) is not None:
            continue
        try:
            lineage = Manifest.read(directory).lineage
        except (ManifestError, OSError):
            continue
        if lineage is not None and lineage.get("job_id") == job.id:
            created = datetime.fromisoformat(lineage["created_at"]).timestamp()
            add_version(session, models, job, number, created)
            return number
    return None


def manifest_digest(directory: Path) -> str:
    """Returns the SHA-256 of a version's manifest, in hexadecimal."""
    return hashlib.sha256((directory / MANIFEST_PATH).read_bytes()).hexdigest()


def add_version(
    session: Session, models: Path, job: Job, number: int, now: float
) -> None:
    """Records a version that a job published, in the caller's transaction."""
    directory = models / job.name / str(number)
    session.add(
        ModelVersion(
            name=job.name,
            number=number,
            digest=manifest_digest(directory),
            job_id=job.id,
            lineage=dict(Manifest.read(directory).lineage or {}),
            created_at=now,
        )
    )
