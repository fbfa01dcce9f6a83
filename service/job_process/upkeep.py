"""What every worker does beside its jobs: repeats its steps, and cleans up."""

import logging
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from sqlalchemy.exc import DBAPIError

from service.shared.database.tables import Job
from service.shared.files import JobFiles, jobs_with_scratch
from service.shared.job_state import ENDED
from service.shared.living_workers import take_dead_workers
from service.shared.queue import Lease, Queue, StaleAttemptError
from service.shared.store import STAGING
from tfbbb.base.files import staged_for

logger = logging.getLogger(__name__)

_CLEANUP_SECONDS = 60.0


class Upkeep:
    """Requeues the jobs of dead workers, and removes leftovers."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._expired_at = self._cleaned_at = float("-inf")

    def do(self) -> None:
        """Does what is due."""
        take_dead_workers(self._queue.settings, self._record_death)
        now = time.monotonic()
        if now - self._expired_at > self._queue.settings.lease_seconds / 3:
            self._queue.expire()
            self._expired_at = now
        if now - self._cleaned_at > _CLEANUP_SECONDS:
            # Set first, so that a file that cannot be removed fails only once a minute.
            self._cleaned_at = now
            remove_leftovers(self._queue)

    def _record_death(self, lease: Lease) -> None:
        # A worker that has recorded the end of its attempt needs no other record.
        with suppress(StaleAttemptError):
            self._queue.record_death(lease)


def repeat(step: Callable[[], bool], stopping: threading.Event, pause: float) -> None:
    """Repeats a step until it must stop; pauses after a step that found no work."""
    logged = None
    while not stopping.is_set():
        fault, worked = None, False
        try:
            worked = step()
        except DBAPIError as error:
            fault = f"the database does not answer: {error.orig}"
        except OSError as error:
            fault = f"{error.filename}: {error.strerror}"
        # A persistent fault is logged once, not at every step.
        if fault is not None and fault != logged:
            logger.warning(fault)
        logged = fault
        if not worked:
            stopping.wait(pause)


def remove_scratch(queue: Queue, job_id: str) -> None:
    """Removes the scratch of a job that has ended or was deleted."""
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
    store.remove_uploads(partial(_has_ended, queue))


def _has_ended(queue: Queue, staged: str) -> bool:
    """Returns whether a name is that of a staged model whose attempt has ended."""
    job_id, _, attempt = staged.partition(".")
    return attempt.isdecimal() and not queue.is_active(Lease(job_id, int(attempt)))
