"""Files and directories that are complete or absent, and faults of their disk."""

import contextlib
import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def flush(path: str | os.PathLike[str]) -> None:
    """Has the disk hold a file's bytes, or the names that are in a directory."""
    descriptor = os.open(Path(path), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Disks that are full, and those that refuse.
_KNOWN = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
)


@contextlib.contextmanager
def disk_faults_named(directory: str | os.PathLike[str]) -> Iterator[None]:
    """Raises an `OSError` that names the directory of a fault of the disk.

    Python's own errors of a write name no file, and TensorFlow has errors of its own,
    which quote the system's message.
    """
    try:
        yield
    except Exception as error:
        number = _error_number(error)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), os.fspath(directory)) from error


def _error_number(error: Exception) -> int | None:
    if isinstance(error, OSError):
        return error.errno if error.errno in _KNOWN else None
    if not type(error).__module__.startswith("tensorflow"):
        return None
    return next((n for n in _KNOWN if os.strerror(n) in str(error)), None)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yields a file to write into; flushes it and renames it to `path` at the end."""
    path = Path(path).absolute()
    unfinished = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with unfinished.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


_STAGING_PREFIX = ".staging-"
# A model is written within minutes.
_ABANDONED_SECONDS = 24 * 3600.0


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields an empty directory to write into; renames it to `path` at the end.

    The directory lies beside `path`, is flushed to disk with all its files and then
    renamed, so `path` never holds half of something, whenever the process or the
    machine stops. If the body raises, the directory and all folders that were made for
    it are removed. A killed process leaves its directory; the next process that writes
    beside it removes the directory once it is a day old.
    """
    path = Path(path).absolute()
    check_free(path)
    made = [parent for parent in path.parents if not parent.exists()]
    staging = path.with_name(f"{_STAGING_PREFIX}{path.name}-{secrets.token_hex(4)}")
    _remove_abandoned(path.parent)
    try:
        staging.mkdir(parents=True)
        yield staging
        for folder, _, files in os.walk(staging, topdown=False):
            for name in files:
                flush(Path(folder) / name)
            flush(Path(folder))
        try:
            staging.rename(path)
        except OSError as error:
            # A directory that is not empty has appeared there meanwhile.
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                check_free(path)
            raise
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        for parent in made:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise
    flush(path.parent)


def _remove_abandoned(parent: Path) -> None:
    """Removes the directories that killed processes left."""
    for staging in parent.glob(f"{_STAGING_PREFIX}*-{'[0-9a-f]' * 8}"):
        with contextlib.suppress(OSError):
            if time.time() - staging.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(staging)


def staged_for(name: str) -> str:
    """Returns the name that a directory gets which is still being written.

    >>> staged_for(".staging-3-0123abcd"), staged_for("3")
    ('3', '3')
    """
    if not name.startswith(_STAGING_PREFIX):
        return name
    return name.removeprefix(_STAGING_PREFIX).rpartition("-")[0]


def check_free(path: str | os.PathLike[str]) -> None:
    """Raises FileExistsError if `path` exists."""
    if Path(path).exists():
        raise FileExistsError(
            "A saved model is never overwritten; choose a path that does not exist. "
            f"Received: {path}"
        )
