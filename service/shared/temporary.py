"""Temporary directories, which the next service removes if their process was killed."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "tfbbb-"
_LOCK = ".lock"


@contextmanager
def temporary_directory(what: str) -> Iterator[Path]:
    """Makes a directory for the time of the block.

    First removes those of processes that have died. The kernel releases the lock of
    each when its process ends.
    """
    _remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{what}-") as directory:
        lock = os.open(Path(directory, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Path(directory)
        finally:
            os.close(lock)


def _remove_leftovers() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        # Another user's, removed meanwhile, or in use.
        with suppress(OSError):
            lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.parent)
            finally:
                os.close(lock)
