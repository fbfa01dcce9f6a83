"""What every worker does beside its jobs: repeats its steps, and cleans up."""

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from service.job_process.cleanup import remove_leftovers
from service.shared.queue import Queue

logger = logging.getLogger(__name__)

_CLEANUP_SECONDS = 60.0


class Upkeep:
    """Requeues the jobs of dead workers, and removes leftovers.

    Args:
        queue: The queue of the jobs.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._expired_at = self._cleaned_at = float("-inf")

    def do(self) -> None:
        """Does what is due."""
        now = time.monotonic()
        if now - self._expired_at > self._queue.settings.lease_seconds / 3:
            self._queue.expire()
            self._expired_at = now
        if now - self._cleaned_at > _CLEANUP_SECONDS:
            # Set first, so that a file that cannot be removed fails only once a minute.
            self._cleaned_at = now
            remove_leftovers(self._queue)


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
