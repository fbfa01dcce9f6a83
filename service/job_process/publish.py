"""Publishes a staged model as a version."""

import errno
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.shared.database.tables import ModelVersion
from service.shared.queue import Lease, Queue
from service.shared.versions import STAGING, add_version
from tfbbb.export.versions import next_version
from tfbbb.flushing import flush


class CancelledError(Exception):
    """The job was cancelled before its version was published."""


def staging_directory(models: Path, lease: Lease) -> Path:
    """Returns where an attempt writes its model, on the disk of the models."""
    return models / STAGING / f"{lease.job_id}.{lease.attempt}"


def publish(queue: Queue, lease: Lease, staged: Path) -> int:
    """Makes a staged model the next version of its job's model.

    Locks the job from the check of the lease to the commit. If the process stops after
    the rename and before the commit, `published_version` finds the version by the job
    id in its lineage.

    Returns:
        The number of the version.

    Raises:
        StaleAttemptError: If the lease has ended; nothing was moved.
        CancelledError: If the job must be cancelled; nothing was moved.
    """
    models = queue.settings.models
    with queue.database.writing() as session:
        job = queue.lock_job(session, lease)
        if job.cancel_requested_at is not None:
            raise CancelledError(f"job {job.id} must be cancelled")
        number = _move(session, models, job.name, staged)
        add_version(session, models, job, number, queue.database.now(session))
        queue.succeed(session, job, number)
    return number


def _move(session: Session, models: Path, name: str, staged: Path) -> int:
    root = models / name
    root.mkdir(parents=True, exist_ok=True)
    highest = select(func.max(ModelVersion.number)).where(ModelVersion.name == name)
    # The number of a deleted version is not used again.
    number = session.scalar(highest) or 0
    while True:
        number = max(number + 1, int(next_version(root).name))
        try:
            staged.rename(root / str(number))
        except OSError as error:
            # Another process has taken the number meanwhile.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            flush(root)
            flush(models)
            return number
