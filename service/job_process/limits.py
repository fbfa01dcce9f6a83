"""Ends a worker that takes more memory or time for its job than it may."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress

import psutil
from sqlalchemy.exc import DBAPIError

from service.shared.queue import Lease, Queue, StaleAttemptError

logger = logging.getLogger(__name__)

# Time to save the state of a training, before the process is ended without it.
_SECONDS_TO_STOP = 25.0


class Limits:
    """The limits of one attempt; `end` ends its process."""

    def __init__(self, queue: Queue, lease: Lease, end: Callable[[], object]) -> None:
        self._queue, self._lease, self._end = queue, lease, end
        self._began = time.monotonic()
        self._asked_at: float | None = None

    def enforce(self, *, must_stop: bool) -> None:
        """Ends the process if the attempt is over a limit, and records the reason."""
        settings, queue, lease = self._queue.settings, self._queue, self._lease
        now = time.monotonic()
        if must_stop:
            self._asked_at = self._asked_at or now
            if now - self._asked_at > _SECONDS_TO_STOP:
                reason = f"It did not stop within {_SECONDS_TO_STOP:g} s"
                self._stop(lambda: queue.release(lease, reason), reason)
        elif _resident_bytes() > settings.job_memory_bytes:
            reason = (
                f"out of memory: it used more than {settings.job_memory_bytes} bytes "
                "(TFBBB_JOB_MEMORY_BYTES)"
            )
            self._stop(lambda: queue.record_death(lease, reason), reason)
        elif now - self._began > settings.job_seconds:
            reason = (
                f"It took longer than {settings.job_seconds:g} s (TFBBB_JOB_SECONDS)"
            )
            self._stop(lambda: queue.fail(lease, reason), reason)

    def _stop(self, record: Callable[[], None], reason: str) -> None:
        logger.error("the process of %s is ended: %s", self._lease, reason)
        # Without a record, the lease expires.
        with suppress(StaleAttemptError, DBAPIError):
            record()
        self._end()


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)
