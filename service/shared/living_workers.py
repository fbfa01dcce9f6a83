"""Which workers of this machine live, and what they do: `DATA_DIR/workers/HOST/ID`.

A worker keeps its file locked. The kernel releases the lock when the process ends,
however it ends.
"""

import fcntl
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from service.shared.database import new_id
from service.shared.queue import Lease
from service.shared.settings import Settings


class WorkerFile:
    """The file of this worker, which names the attempt that it runs, if any."""

    def __init__(self, settings: Settings) -> None:
        place = _directory(settings) / new_id()
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{place.name}")
        self._file = part.open("w")
        # A file system without locks: leases expire all the same.
        with suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX)
        part.rename(place)

    def write(self, lease: Lease | None) -> None:
        """Writes which attempt the worker runs."""
        self._file.seek(0)
        self._file.truncate()
        if lease is not None:
            self._file.write(f"{lease.job_id}.{lease.attempt}")
        self._file.flush()

    def close(self) -> None:
        """Releases the lock, as the end of the process does."""
        self._file.close()


def any_worker_lives(settings: Settings) -> bool:
    """Returns whether a worker lives that shares the data directory on this machine."""
    for path in _files(settings):
        # Another process may have removed it.
        with suppress(FileNotFoundError), path.open("r+") as file:
            if not _locks(file):
                return True
    return False


def take_dead_workers(settings: Settings, record: Callable[[Lease], None]) -> None:
    """Records the attempts of workers that have died, and removes their files."""
    for path in _files(settings):
        with suppress(FileNotFoundError), path.open("r+") as file:
            if _locks(file):
                job_id, _, attempt = file.read().partition(".")
                if attempt:
                    record(Lease(job_id, int(attempt)))
                path.unlink()


def _files(settings: Settings) -> list[Path]:
    return list(_directory(settings).glob("[!.]*"))


def _directory(settings: Settings) -> Path:
    # Machines that share a disk may not see the locks of each other.
    return settings.data_dir / "workers" / socket.gethostname()


def _locks(file: IO[str]) -> bool:
    """Locks a file until it is closed; returns False if its worker lives."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
