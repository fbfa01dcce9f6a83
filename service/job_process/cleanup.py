"""Removes files that attempts needed only while they ran."""

import shutil

from service.shared.database.tables import Job
from service.shared.files import JobFiles, jobs_with_scratch
from service.shared.job_state import ENDED
from service.shared.queue import Lease, Queue
from service.shared.store import STAGING
from tfbbb.base.files import staged_for


def remove_scratch(queue: Queue, job_id: str) -> None:
    """Removes the scratch directory of a job that has ended or was deleted.

    Locks the job while it moves the scratch aside, so that the first attempt of a
    retried job creates a new one.
    """
    files = JobFiles(queue.settings, job_id)
    with queue.database.writing() as session:
        job = session.get(Job, job_id, with_for_update=True)
        if job is not None and job.state not in ENDED:
            return
        files.discard_scratch()
        queue.store.remove_checkpoints(job_id)
    files.remove_discarded()


def remove_leftovers(queue: Queue) -> None:
    """Removes the scratch of ended jobs, and the staged models of ended attempts."""
    store = queue.store
    for job_id in jobs_with_scratch(queue.settings) | store.jobs_with_checkpoints():
        remove_scratch(queue, job_id)
    for staged in (store.models / STAGING).glob("*.*"):
        # A process that is killed during an export leaves a temporary name.
        if _has_ended(queue, staged_for(staged.name)):
            shutil.rmtree(staged, ignore_errors=True)
    for upload in store.uploads():
        if _has_ended(queue, upload):
            store.remove_upload(upload)


def _has_ended(queue: Queue, staged: str) -> bool:
    """Returns whether a name is that of a staged model whose attempt has ended."""
    job_id, _, attempt = staged.partition(".")
    return attempt.isdecimal() and not queue.is_active(Lease(job_id, int(attempt)))
