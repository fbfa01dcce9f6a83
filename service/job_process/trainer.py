"""The main function of a trainer process; see `service.trainer`."""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from service.job_process.attempt import Attempt, Trainer
from service.shared.database import Database
from service.shared.files import JobFiles
from service.shared.logs import configure_logging
from service.shared.queue import Lease, Queue
from service.shared.settings import Settings

logger = logging.getLogger("service.trainer")


def main(
    make_trainer: Callable[[Settings], Trainer], arguments: list[str] | None = None
) -> int:
    """Runs the process; returns its exit code."""
    parser = argparse.ArgumentParser("python -m service.trainer")
    parser.add_argument(
        "job_id",
        nargs="?",
        help="a queued job, or the job of the leased attempt; none to prepare for jobs "
        "from stdin, with --stay",
    )
    parser.add_argument("--attempt", type=int, help="the leased attempt")
    parser.add_argument("--stay", action="store_true", help="take more jobs from stdin")
    parser.add_argument(
        "--print-log", action="store_true", help="print, in place of the job's log"
    )
    options = parser.parse_args(arguments)
    configure_logging("trainer")
    settings = Settings.from_environment()
    queue = Queue(Database(settings.effective_database_url), settings)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
    lease: Lease | None = None
    if options.job_id is None:
        if not options.stay:
            parser.error("name a job, or pass --stay")
        trainer, inbox = make_trainer(settings), Inbox(sys.stdin, stopping)
        trainer.prepare(inbox.has_next)
        return _run_all(queue, stopping, trainer, inbox, inbox.next())
    if options.attempt is not None:
        lease = Lease(options.job_id, options.attempt)
    else:
        lease = queue.lease_job(options.job_id, socket.gethostname(), os.getpid())
    if lease is None:
        print(f"There is no queued job {options.job_id}.", file=sys.stderr)
        return 1
    trainer = make_trainer(settings)
    if options.print_log:
        logger.info("%s", lease)
        return 0 if Attempt(queue, lease, stopping, trainer).run() else 1
    if not options.stay:
        return 0 if run(Attempt(queue, lease, stopping, trainer)) else 1
    return _run_all(queue, stopping, trainer, Inbox(sys.stdin, stopping), lease)


def _run_all(
    queue: Queue,
    stopping: threading.Event,
    trainer: Trainer,
    inbox: "Inbox",
    lease: Lease | None,
) -> int:
    """Runs attempts until one fails, or there are no more; returns the exit code."""
    while lease is not None and run(Attempt(queue, lease, stopping, trainer)):
        print("ready", flush=True)
        lease = inbox.next()
    return 0


def run(attempt: Attempt) -> bool:
    """Runs an attempt, and redirects output to the job's log; see `Attempt.run`."""
    lease = attempt.lease
    with redirect_output(JobFiles(attempt.queue.settings, lease.job_id)):
        logger.info("%s", lease)
        return attempt.run()


class Inbox:
    """The leases that a dispatcher sends, one per line of the input.

    At the end of the input, e.g. when the dispatcher dies, sets `stopping`.
    """

    def __init__(self, source: IO[str], stopping: threading.Event) -> None:
        self._source = source
        self._stopping = stopping
        self._lines: list[str] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._read, name="inbox", daemon=True).start()

    def has_next(self) -> bool:
        """Returns whether a lease waits, or the process must end."""
        return bool(self._lines) or self._stopping.is_set()

    def next(self) -> Lease | None:
        """Waits for the next lease; None if the process must end."""
        with self._changed:
            while not self._lines:
                if self._stopping.is_set():
                    return None
                # A signal sets `stopping` without a notification.
                self._changed.wait(0.5)
            job_id, attempt = self._lines.pop(0).split()
        return Lease(job_id, int(attempt))

    def _read(self) -> None:
        for line in self._source:
            with self._changed:
                self._lines.append(line)
                self._changed.notify()
        self._stopping.set()
        with self._changed:
            self._changed.notify()


@contextmanager
def redirect_output(files: JobFiles) -> Iterator[None]:
    """Redirects all output of this process to the job's log."""
    files.directory.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    before = [os.dup(number) for number in (1, 2)]
    with files.log.open("ab") as log:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, saved in zip((1, 2), before, strict=True):
            os.dup2(saved, number)
            os.close(saved)
