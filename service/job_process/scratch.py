"""Removing what jobs needed only until they ended."""

from service.shared.database.tables import Job
from service.shared.files import JobFiles
from service.shared.job_state import ENDED
from service.shared.queue import Queue


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
