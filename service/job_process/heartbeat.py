import logging
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy.exc import DBAPIError

from service.shared.queue import Lease, Queue, StaleAttemptError

if TYPE_CHECKING:
    from tfbbb.training.progress import Progress

logger = logging.getLogger(__name__)

_SECONDS = 0.5


class Pulse:
    """Shows, from a thread of its own, that a lease is in use and how far its job is.

    While the database does not answer, what is to be told is kept, and training goes
    on: publishing checks the lease.

    Args:
        queue: Where the job is.
        lease: The lease to renew.
        leaving: Set when the process is to end.

    Attributes:
        stale: Whether the lease has ended.
        cancelled: Whether the job is to be cancelled.
    """

    def __init__(self, queue: Queue, lease: Lease, leaving: threading.Event) -> None:
        self.stale = self.cancelled = False
        self._queue = queue
        self._lease = lease
        self._leaving = leaving
        self._renewed_at = time.monotonic()
        self._first: Progress | None = None
        self._progress: dict[str, Any] | None = None
        self._epochs: list[dict[str, Any]] = []
        self._figures: dict[str, float | None] = {}
        self._lock = threading.Lock()
        self._telling = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        if not self.stale:
            self.tell()

    def should_stop(self) -> bool:
        """Whether training should stop, its state saved.

        Raises:
            StaleAttemptError: If the lease has ended: the state is another's to save.
        """
        if self.stale:
            raise StaleAttemptError(f"{self._lease} has ended")
        return self.cancelled or self._leaving.is_set()

    def report(self, progress: "Progress") -> None:
        """Takes up how far training is, to be told with the next beat."""
        figures = {name: _plain(value) for name, value in progress.figures.items()}
        told = {
            "epoch": progress.epoch,
            "epochs": progress.epochs,
            "step": progress.step,
            "steps": progress.steps,
        }
        with self._lock:
            if figures:
                self._figures = figures
                self._epochs.append({**told, **figures})
            self._progress = {
                **told,
                "saved_step": progress.saved_step,
                "seconds_per_step": self._pace(progress),
                # Between the reports of epochs the latest figures stay.
                "figures": self._figures,
            }

    def tell(self) -> None:
        """Tells what has been reported, now."""
        with self._telling:
            self._beat()

    def _pace(self, progress: "Progress") -> float | None:
        """Seconds per step since the first report: steps before it were compiled."""
        self._first = first = self._first or progress
        taken = progress.step - first.step
        return (progress.seconds - first.seconds) / taken if taken else None

    def _run(self) -> None:
        while not self._over.wait(_SECONDS):
            try:
                self.tell()
            except Exception:
                # Without a pulse the job would be given to another while it runs.
                logger.exception("the job's progress can't be told")
            if self.stale:
                return

    def _beat(self) -> None:
        with self._lock:
            progress, epochs = self._progress, self._epochs
            self._progress, self._epochs = None, []
        try:
            self._tell(progress, epochs)
        except StaleAttemptError:
            self.stale = True
        except DBAPIError as error:
            logger.warning("the database does not answer: %s", error.orig)
            with self._lock:
                self._progress = self._progress or progress
                self._epochs = epochs + self._epochs

    def _tell(
        self, progress: dict[str, Any] | None, epochs: list[dict[str, Any]]
    ) -> None:
        lease_age = time.monotonic() - self._renewed_at
        if progress is not None or lease_age > self._queue.settings.lease_seconds / 3:
            begin = time.monotonic()
            self.cancelled |= self._queue.heartbeat(self._lease, progress, epochs)
            self._renewed_at = begin
        elif self._queue.is_to_stop(self._lease):
            # Says which of the two it is.
            self.cancelled |= self._queue.heartbeat(self._lease)


def _plain(value: float) -> float | None:
    # JSON has no other numbers.
    return float(value) if abs(value) < float("inf") else None
