"""Runs the processes of the service on one machine until it is told to stop."""

import os
import queue
import signal
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from service.parent.supervision import SupervisedProcess
from service.shared.settings import Settings

_API = "service.api.worker"
_TRAINING = ("tfbbb", "worker")

# The C library of Linux else gives the arrays of each batch back to the system, which
# takes longer than to predict 64 rows.
_ALLOCATION = dict.fromkeys(
    ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(32 * 2**20)
)

# An API process has 30 s to finish its requests, and a worker saves its job.
_SECONDS_TO_STOP = 35.0


def run(settings: Settings, host: str, port: int) -> None:
    """Runs processes that answer a port, and workers, until a signal.

    All of them are told to stop at once: the API finishes its requests, while the
    workers requeue their jobs.
    """
    with _noted_signals() as noted, TemporaryDirectory(prefix="tfbbb-") as place:
        directory = Path(place)
        environment = os.environ | settings.environment()
        # The child processes read keys from the database.
        environment.pop("TFBBB_ADMIN_KEY", None)
        # Where the library of the metrics keeps the counters of all API processes.
        counters = {"PROMETHEUS_MULTIPROC_DIR": str(directory)}
        children = [
            *_api_processes(
                settings, host, port, directory, _ALLOCATION | environment | counters
            ),
            *workers(settings, environment),
        ]
        for child in children:
            child.start()
        number = noted.get()
        with ThreadPoolExecutor(len(children)) as threads:
            list(threads.map(lambda child: child.stop(_SECONDS_TO_STOP), children))
    if number == signal.SIGINT:
        raise KeyboardInterrupt


def workers(
    settings: Settings, environment: Mapping[str, str]
) -> Iterator[SupervisedProcess]:
    """Yields the workers, which train beside the API."""
    for number in range(1, settings.job_slots + 1):
        # One of them is enough to be ready for the job that follows an upload.
        prepare = "--prepare" if number == 1 else "--no-prepare"
        command = [sys.executable, "-m", *_TRAINING, prepare, "--until-input-ends"]
        yield SupervisedProcess(f"worker {number}", command, environment)


def _api_processes(
    settings: Settings,
    host: str,
    port: int,
    directory: Path,
    environment: Mapping[str, str],
) -> Iterator[SupervisedProcess]:
    shared = host, str(port), str(directory / "refreshes")
    for number in range(settings.workers):
        command = [sys.executable, "-m", _API, str(number), *shared]
        yield SupervisedProcess(f"API process {number}", command, environment)


@contextmanager
def _noted_signals() -> Iterator["queue.SimpleQueue[int]"]:
    """Yields the signals to stop that come in the block."""
    noted: queue.SimpleQueue[int] = queue.SimpleQueue()

    def note(number: int, frame: FrameType | None) -> None:
        noted.put(number)

    signals = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, note) for number in signals}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
