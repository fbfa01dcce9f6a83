"""The process that trains: it leases jobs, and runs one after the other.

Several workers, on one machine or on many, share a database. At SIGTERM a worker saves
its job, which returns to the queue, and ends.
"""

import logging
import signal
import sys
import threading
import time

from service.job_process.attempt import Attempt, describe_failure
from service.job_process.process import Process
from service.job_process.table_trainer import TableTrainer
from service.job_process.upkeep import Upkeep, repeat
from service.shared.files import JobFiles
from service.shared.living_workers import WorkerFile
from service.shared.queue import Lease, Queue

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
# Pause after a job could not be started, e.g. because the disk is full.
_SECONDS_TO_RECOVER = 10.0
# Time without a job after which a worker gives back the memory of its libraries.
_WARM_SECONDS = 300.0
# Time for workers that have the libraries to take a job, before one imports them.
_SECONDS_FOR_OTHERS = 1.0


class Worker:
    """Runs jobs one after the other; one that `prepares` imports libraries early."""

    def __init__(
        self,
        queue: Queue,
        trainer: TableTrainer,
        process: Process,
        stopping: threading.Event,
        *,
        prepares: bool = True,
    ) -> None:
        self._queue, self._trainer, self._process = queue, trainer, process
        self._stopping, self._prepares = stopping, prepares
        self._upkeep = Upkeep(queue)
        self._file = WorkerFile(queue.settings)
        # None before the first look: earlier uploads may be of last week.
        self._newest_upload: float | None = None
        # When the imported libraries were last of use; None if there are none.
        self._used_at: float | None = None

    def run(self) -> None:
        """Runs jobs until the process must end."""
        repeat(self.step, self._stopping, _POLL_SECONDS)

    def step(self) -> bool:
        """Runs a job, or prepares for one; returns whether it ran a job."""
        self._upkeep.do()
        if not self._queue.has_work():
            self._prepare()
            return False
        if self._used_at is None and self._stopping.wait(_SECONDS_FOR_OTHERS):
            return False
        lease = self._queue.lease()
        if lease is not None:
            self.attempt(lease)
        return lease is not None

    def attempt(self, lease: Lease) -> bool:
        """Runs one attempt of a job; returns whether the job needs no other one."""
        logger.info("%s", lease)
        self._file.write(lease)
        try:
            self._process.write_to(JobFiles(self._queue.settings, lease.job_id).log)
        except OSError as error:
            reason = f"Its log could not be opened: {describe_failure(error)}"
            self._queue.release(lease, reason)
            self._stopping.wait(_SECONDS_TO_RECOVER)
            raise
        try:
            logger.info("%s", lease)
            end = self._process.start_anew
            is_as_new = Attempt(
                self._queue, lease, self._stopping, self._trainer, end
            ).run()
        finally:
            self._process.write_to(None)
            self._file.write(None)
        self._used_at = time.monotonic()
        if not is_as_new and not self._stopping.is_set():
            self._process.start_anew()
        return is_as_new

    def _prepare(self) -> None:
        """Imports the libraries after an upload, and later gives them back."""
        newest = self._queue.newest_upload()
        seen, self._newest_upload = self._newest_upload, newest
        now = time.monotonic()
        is_of_use = self._prepares or self._used_at is not None
        if seen is not None and newest > seen and is_of_use:
            if self._used_at is None:
                self._trainer.prepare(self._is_needed)
            self._used_at = now
        elif self._used_at is not None and now > self._used_at + _WARM_SECONDS:
            self._process.start_anew()

    def _is_needed(self) -> bool:
        return self._stopping.is_set() or self._queue.has_work()


def stop_on_signals(*, until_input_ends: bool = False) -> threading.Event:
    """Returns an event that SIGTERM, SIGINT or the end of the input set."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: stopping.set())

    def await_end_of_input() -> None:
        sys.stdin.read()
        stopping.set()

    if until_input_ends:
        threading.Thread(target=await_end_of_input, daemon=True).start()
    return stopping


def run_worker(
    queue: Queue,
    trainer: TableTrainer,
    stopping: threading.Event,
    *,
    job_id: str | None = None,
    prepares: bool = True,
) -> int:
    """Runs one queued job, or all until the process must end; returns the exit code."""
    process = Process(once=job_id is not None)
    worker = Worker(queue, trainer, process, stopping, prepares=prepares)
    if job_id is None:
        worker.run()
        return 0
    lease = queue.lease_job(job_id)
    if lease is None:
        print(f"There is no queued job {job_id}.", file=sys.stderr)
        return 1
    return 0 if worker.attempt(lease) else 1
