"""Renews the lease of a running job, records its progress, and enforces its limits."""

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import psutil
from sqlalchemy.exc import DBAPIError

from service.shared.queue import Lease, Queue, StaleAttemptError
from tfbbb.base.types import JsonObject
from tfbbb.training.job_clock import JobClock

if TYPE_CHECKING:
    from tfbbb.training.job_clock import Progress

logger = logging.getLogger(__name__)

_SECONDS = 1.0
# Time to save the state of a training, before the process is ended without it.
_SECONDS_TO_STOP = 25.0


class Heartbeat:
    """Renews a lease, records the progress of its job, and ends it at its limits.

    It is a thread beside the training. While the database does not answer, training
    continues and the progress is kept in memory; publishing checks the lease. `end`
    ends the process.
    """

    def __init__(
        self,
        queue: Queue,
        lease: Lease,
        stopping: threading.Event,
        clock: JobClock | None = None,
        end: Callable[[], object] = lambda: None,
    ) -> None:
        self._queue, self._lease, self._stopping = queue, lease, stopping
        self._clock, self._end = clock, end
        self._began = time.monotonic()
        self._asked_at: float | None = None
        self.stale = self.cancelled = False
        self._progress: JsonObject | None = None
        self._epochs: list[JsonObject] = []
        self._figures: dict[str, float | None] = {}
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        if not self.stale:
            self.send()

    def should_stop(self) -> bool:
        """Returns whether training should save its state and stop."""
        if self.stale:
            raise StaleAttemptError(f"{self._lease} has ended")
        return self._must_stop

    @property
    def _must_stop(self) -> bool:
        return self.stale or self.cancelled or self._stopping.is_set()

    def report(self, progress: "Progress") -> None:
        """Stores the progress of training; the next heartbeat records it."""
        # JSON has only finite numbers.
        figures = {
            name: float(value) if math.isfinite(value) else None
            for name, value in progress.figures.items()
        }
        names = ("epoch", "epochs", "step", "steps")
        position = {name: getattr(progress, name) for name in names}
        if progress.stage:
            position["stage"] = progress.stage
        with self._lock:
            if figures:
                self._figures = figures
                self._epochs.append(position | figures)
            # Reports within an epoch keep the figures of the latest epoch.
            self._progress = {
                **position,
                "saved_step": progress.saved_step,
                "figures": self._figures,
            }

    def send(self) -> None:
        """Records the reported progress now."""
        with self._sending:
            with self._lock:
                progress, epochs = self._progress, self._epochs
                self._progress, self._epochs = None, []
            timing = None if self._clock is None else self._clock.left().to_json()
            told = progress, epochs, timing
            try:
                self.cancelled |= self._queue.heartbeat(self._lease, *told)
            except StaleAttemptError:
                self.stale = True
            except DBAPIError as error:
                logger.warning("the database does not answer: %s", error.orig)
                with self._lock:
                    self._progress = self._progress or progress
                    self._epochs = epochs + self._epochs

    def enforce_limits(self) -> None:
        """Ends the process if the attempt is over a limit, and records the reason."""
        settings, queue = self._queue.settings, self._queue
        now = time.monotonic()
        if self._must_stop:
            self._asked_at = self._asked_at or now
            if now - self._asked_at > _SECONDS_TO_STOP:
                reason = f"It did not stop within {_SECONDS_TO_STOP:g} s"
                self._end_process(queue.release, reason)
        elif psutil.Process().memory_info().rss > settings.job_memory_bytes:
            reason = (
                f"out of memory: it used more than {settings.job_memory_bytes} bytes "
                "(TFBBB_JOB_MEMORY_BYTES)"
            )
            self._end_process(queue.record_death, reason)
        elif now - self._began > settings.job_seconds:
            reason = (
                f"It took longer than {settings.job_seconds:g} s (TFBBB_JOB_SECONDS)"
            )
            self._end_process(queue.fail, reason)

    def _end_process(self, record: Callable[[Lease, str], None], reason: str) -> None:
        logger.error("the process of %s is ended: %s", self._lease, reason)
        # Without a record, the lease expires.
        with suppress(StaleAttemptError, DBAPIError):
            record(self._lease, reason)
        self._end()

    def _run(self) -> None:
        while not self._over.wait(_SECONDS):
            try:
                if not self.stale:
                    self.send()
                self.enforce_limits()
            except Exception:
                # Without heartbeats another attempt would start while this one runs.
                logger.exception("could not record the progress of the job")
