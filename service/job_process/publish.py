"""The one step that makes a staged model a version."""

import errno
import hashlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.shared.database.tables import Job, ModelVersion
from tfbbb.export.manifest import MANIFEST_PATH, Manifest, ManifestError
from tfbbb.export.versions import next_version, version_number
from tfbbb.flushing import flush

if TYPE_CHECKING:
    from service.shared.queue import Lease, Queue

STAGING = ".staging"


class CancelledError(Exception):
    """The job was cancelled before its version was in place."""


def staging_directory(models: Path, lease: "Lease") -> Path:
    """Where an attempt writes its model: beside the models, so that it can be moved."""
    return models / STAGING / f"{lease.job_id}.{lease.attempt}"


def publish(queue: "Queue", lease: "Lease", staged: Path) -> int:
    """Makes a staged model the next version of the name that its job gives.

    The job's row is locked from the check of the attempt to the commit. A process that
    stops after the rename and before the commit leaves a version that says which job
    it is of; `published_version` finds it.

    Returns:
        The number of the version.

    Raises:
        StaleAttemptError: If the lease has ended; nothing has moved.
        CancelledError: If the job is to be cancelled; nothing has moved.
    """
    models = queue.settings.models
    with queue.database.writing() as session:
        job = queue.holding(session, lease)
        if job.cancel_requested_at is not None:
            raise CancelledError(f"job {job.id} is to be cancelled")
        number = _move(session, models, job.name, staged)
        _add(session, models, job, number, queue.database.now(session))
        queue.succeed(session, job, number)
    return number


def published_version(session: Session, models: Path, job: Job) -> int | None:
    """The version that a job got whose process stopped before it could say so.

    Its row is added in the caller's transaction, which holds the job.
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
            _add(session, models, job, number, created)
            return number
    return None


def manifest_digest(directory: Path) -> str:
    """The SHA-256 of a version's manifest, in hexadecimal."""
    return hashlib.sha256((directory / MANIFEST_PATH).read_bytes()).hexdigest()


def _move(session: Session, models: Path, name: str, staged: Path) -> int:
    root = models / name
    root.mkdir(parents=True, exist_ok=True)
    highest = select(func.max(ModelVersion.number)).where(ModelVersion.name == name)
    # A number that was deleted is not given again.
    number = session.scalar(highest) or 0
    while True:
        number = max(number + 1, int(next_version(root).name))
        try:
            staged.rename(root / str(number))
        except OSError as error:
            # Another process has taken it meanwhile.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            flush(root)
            flush(models)
            return number


def _add(session: Session, models: Path, job: Job, number: int, now: float) -> None:
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
