"""One attempt of one job, from its lease to its end."""

import errno
import logging
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from service.job_process.heartbeat import Heartbeat
from service.job_process.publish import CancelledError, publish, staging_directory
from service.job_process.table_trainer import Export, TableTrainer
from service.job_process.upkeep import remove_scratch
from service.shared.database import LOST
from service.shared.database.tables import Job
from service.shared.queue import Lease, Queue, StaleAttemptError
from service.shared.store import StoreOutageError
from service.shared.versions import latest_version
from tfbbb.training.job_clock import Interrupted, JobClock, Progress

logger = logging.getLogger(__name__)

# Errors of a disk or a machine, on which the job may succeed later.
_OF_THE_MACHINE = {
    errno.EDQUOT,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOSPC,
    errno.EROFS,
}

Result = TypeVar("Result")


class ShutdownError(Exception):
    """The process must end; its job goes back to the queue."""


@dataclass(frozen=True)
class Attempt:
    """One attempt of a job."""

    queue: Queue
    lease: Lease
    # Set when the process must end before the job does.
    stopping: threading.Event
    trainer: TableTrainer
    # Ends the process at once, if the attempt is over its limits.
    end: Callable[[], object]

    def run(self) -> bool:
        """Runs the attempt; returns whether the process can run another one."""
        try:
            failure = self._work()
            if failure is not None:
                self._retry(lambda: self.queue.fail(self.lease, failure))
            self._clean_up()
        except StaleAttemptError:
            logger.warning("the lease has ended; the result is not recorded")
            return False
        except ShutdownError:
            return False
        return failure is None and not self.stopping.is_set()

    def _work(self) -> str | None:
        """Trains and publishes; returns the reason if the job fails."""
        clock = JobClock()
        clock.begin("loading")
        heartbeat = Heartbeat(self.queue, self.lease, self.stopping, clock, self.end)
        try:
            with heartbeat:
                self._train_and_publish(heartbeat, clock)
        except (Interrupted, CancelledError):
            reason = "The service stopped"
            self._retry(lambda: self.queue.release(self.lease, reason))
        except (StaleAttemptError, ShutdownError):
            raise
        except Exception as error:
            logger.exception("the attempt failed")
            reason = describe_failure(error)
            if getattr(error, "errno", None) not in _OF_THE_MACHINE:
                return reason
            record = self.queue.record_death
            self._retry(lambda: record(self.lease, reason, of_machine=True))
        return None

    def _train_and_publish(self, heartbeat: Heartbeat, clock: JobClock) -> None:
        job = self._retry(self._job)
        store = self.queue.store
        if store.is_directory and store.models.exists():
            store.check()  # Not after a training that would be lost.
        export = self._train(job, heartbeat, clock)
        heartbeat.send()
        self._retry(lambda: self.queue.begin_export(self.lease))
        logger.info("trained; exporting")
        staged = staging_directory(store.models, self.lease)
        with suppress(FileNotFoundError):
            shutil.rmtree(staged)
        export(staged)
        clock.begin("version")
        version = self._retry(lambda: publish(self.queue, self.lease, staged))
        clock.end()
        took = ", ".join(f"{name} {x:.1f} s" for name, x in clock.seconds.items())
        logger.info("took %.1f s: %s", clock.elapsed, took)
        logger.info("published %s, version %d", job.name, version)

    def _train(self, job: Job, heartbeat: Heartbeat, clock: JobClock) -> Export:
        """Trains from the stored checkpoints, and stores new ones."""
        store, saved_step = self.queue.store, 0
        serving = self._retry(lambda: self._latest(job.name))
        self._retry(lambda: store.restore_checkpoints(job.id))

        def report(progress: Progress) -> None:
            nonlocal saved_step
            if progress.saved_step > saved_step:
                saved_step = progress.saved_step
                self._save_checkpoints()
            heartbeat.report(progress)

        told = serving, report, heartbeat.should_stop, clock
        try:
            return self._retry(lambda: self.trainer.train(job, *told))
        except Interrupted:
            self._save_checkpoints()
            raise

    def _save_checkpoints(self) -> None:
        """Stores the checkpoints, unless a later attempt stores its own."""
        try:
            if self.queue.is_active(self.lease):
                self.queue.store.save_checkpoints(self.lease.job_id)
        except LOST as error:
            logger.warning("could not store the checkpoint: %s", error.orig)
        except OSError as error:
            # Training continues; the next checkpoint may be stored.
            logger.warning("could not store the checkpoint: %s", error.strerror)

    def _latest(self, name: str) -> int | None:
        with self.queue.database.reading() as session:
            return latest_version(session, self.queue.store, name)

    def _job(self) -> Job:
        with self.queue.database.reading() as session:
            return session.get_one(Job, self.lease.job_id)

    def _retry(self, write: Callable[[], Result]) -> Result:
        """Retries an operation until the database and the store answer."""
        pause = 0.5
        while True:
            try:
                return write()
            except LOST as error:
                fault: Exception = error
                logger.warning("waiting %g s for the database: %s", pause, error.orig)
            except StoreOutageError as error:
                fault = error
                logger.warning("waiting %g s for the store: %s", pause, error.strerror)
            if self.stopping.wait(pause):
                raise ShutdownError from fault
            pause = min(2 * pause, 30.0)

    def _clean_up(self) -> None:
        staged = staging_directory(self.queue.store.models, self.lease)
        shutil.rmtree(staged, ignore_errors=True)
        self._retry(lambda: remove_scratch(self.queue, self.lease.job_id))


def describe_failure(error: Exception) -> str:
    """Describes in one sentence for the user why a job failed."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    # PostgreSQL refuses texts with a NUL character.
    text = " ".join(str(error).replace("\0", "\N{REPLACEMENT CHARACTER}").split())
    if type(error).__module__.startswith(("tfbbb", "service")):
        return text
    return f"{type(error).__name__}: {text}; the log has details"
