"""Locks the data directory of a running service, and keeps a reserve in it."""

import fcntl
import json
import logging
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from service.shared.settings import Settings

logger = logging.getLogger(__name__)

_LOCK = "service.lock"
# Bytes for deletions, which also write, on a disk that is full.
_RESERVE, _RESERVE_BYTES = "reserve", 2**22


class DataDirectoryInUseError(Exception):
    """Another running service uses the data directory; the message names it."""


@contextmanager
def lock_data_directory(settings: Settings) -> Iterator[None]:
    """Keeps other services from the data directory until the block ends.

    Services on one PostgreSQL database without an object store share the data directory
    on purpose: they keep others out, but not one another.
    """
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = settings.data_dir / _LOCK
    # Not inherited by child processes, which would keep the lock.
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        on_postgresql = (settings.database_url or "").startswith("postgresql")
        is_shared = on_postgresql and settings.store is None
        kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataDirectoryInUseError(
                f"Another service uses the data directory {settings.data_dir}"
                f"{_owner(file)}: stop it, or name another directory with --data-dir."
            ) from None
        except OSError as error:
            advice = f"let no other service use {settings.data_dir}"
            logger.warning(f"{path} cannot be locked ({error.strerror}): {advice}")
        owner = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "since": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(owner).encode(), 0)
        yield
    finally:
        os.close(file)


def _owner(file: int) -> str:
    try:
        owner = json.loads(os.pread(file, 4096, 0))
        return f", process {owner['process']} on {owner['host']} since {owner['since']}"
    except (OSError, ValueError, KeyError):
        # It has just been locked.
        return ""


def free_reserve(settings: Settings) -> None:
    """Frees the reserve if the disk is full, so that a deletion can be written."""
    with suppress(OSError):
        if shutil.disk_usage(settings.data_dir).free < _RESERVE_BYTES:
            (settings.data_dir / _RESERVE).unlink(missing_ok=True)


def write_reserve(settings: Settings) -> None:
    """Keeps some bytes of the disk for deletions, unless it is full."""
    file = settings.data_dir / _RESERVE
    with suppress(OSError):
        free = shutil.disk_usage(settings.data_dir).free
        if not file.exists() and free > 2 * _RESERVE_BYTES:
            file.write_bytes(bytes(_RESERVE_BYTES))
