"""The one step that makes a staged model a version."""

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
    """The job was cancelled before its version was in place."""


def staging_directory(models: Path, lease: Lease) -> Path:
    """Where an attempt writes its model: beside the models, so that it can be moved."""
    return models / STAGING / f"{lease.job_id}.{lease.attempt}"


def publish(queue: Queue, lease: Lease, staged: Path) -> int:
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
        job = queue.lock_job(session, lease)
        if job.cancel_requested_at is not None:
            raise CancelledError(f"job {job.id} is to be cancelled")
        number = _move(session, models, job.name, staged)
        add_version(session, models, job, number, queue.database.now(session))
        queue.succeed(session, job, number)
    return number


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
