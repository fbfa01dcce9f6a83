"""Removing what attempts needed only until they ended."""

import shutil

from service.shared.database.tables import Job
from service.shared.files import JobFiles, jobs_with_scratch
from service.shared.job_state import ENDED
from service.shared.queue import Lease, Queue
from service.shared.versions import STAGING
from tfbbb.export.atomic import staged_for


def remove_scratch(queue: Queue, job_id: str) -> None:
    """Removes the scratch of a job, unless the job is there and has not ended.

    The job is held while its scratch is moved out of its place: an attempt that begins
    meanwhile, as the job is tried again, has one of its own.
    """
    files = JobFiles(queue.settings, job_id)
    with queue.database.writing() as session:
        job = session.get(Job, job_id, with_for_update=True)
        if job is not None and job.state not in ENDED:
            return
        files.discard_scratch()
    files.remove_discarded()


def tidy(queue: Queue) -> None:
    """Removes what ended attempts left: scratch of ended jobs, staged models.

    Nothing else is touched.
    """
    settings = queue.settings
    for job_id in jobs_with_scratch(settings):
        remove_scratch(queue, job_id)
    for staged in (settings.models / STAGING).glob("*.*"):
        # A process that is killed as it exports leaves a name of its own.
        job_id, _, attempt = staged_for(staged.name).partition(".")
        if attempt.isdecimal() and not queue.is_active(Lease(job_id, int(attempt))):
            shutil.rmtree(staged, ignore_errors=True)
