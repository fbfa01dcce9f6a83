"""Publishes a staged model as a version."""

from pathlib import Path

from sqlalchemy import func, select

from service.shared.database.tables import ModelVersion
from service.shared.queue import Lease, Queue
from service.shared.store import STAGING
from service.shared.versions import add_version
from tfbbb.export.manifest import MANIFEST_PATH


class CancelledError(Exception):
    """The job was cancelled before its version was published."""


def staging_directory(models: Path, lease: Lease) -> Path:
    """Returns where an attempt writes its model, on the disk of the models."""
    return models / STAGING / f"{lease.job_id}.{lease.attempt}"


def publish(queue: Queue, lease: Lease, staged: Path) -> int:
    """Makes a staged model the next version of its job's model.

    Locks the job from the check of the lease to the commit, and the numbers of its
    model. If the process stops after the store has the version and before the commit,
    `published_version` finds the version by the job id in its lineage.
    """
    store = queue.store
    manifest = (staged / MANIFEST_PATH).read_bytes()
    store.upload_version(staged)
    with queue.database.writing() as session:
        job = queue.lock_job(session, lease)
        if job.cancel_requested_at is not None:
            raise CancelledError(f"job {job.id} must be cancelled")
        highest = select(func.max(ModelVersion.number)).where(
            ModelVersion.name == job.name
        )
        queue.database.lock(session, f"the numbers of {job.name}")
        # The number of a deleted version is not used again.
        least = (session.scalar(highest) or 0) + 1
        number = store.add_version(staged, job.name, least)
        add_version(session, job, number, manifest, queue.database.now(session))
        queue.succeed(session, job, number)
    return number
