"""The temporary file of an upload."""

import fcntl
import hashlib
import logging
import os
import shutil
from pathlib import Path

from service.shared.database import new_id
from service.shared.errors import InsufficientStorage
from tfbbb.tables.format import BEGINNING_BYTES

logger = logging.getLogger(__name__)

_BYTES_BETWEEN_LOOKS = 2**25


class UploadFile:
    """A file that is being written, in a directory of uploads.

    The writer holds a lock on the file, so that other processes recognise files whose
    writer is dead.
    """

    def __init__(self, directory: Path, min_free_bytes: int) -> None:
        self._min_free_bytes = min_free_bytes
        self._sha256 = hashlib.sha256()
        self.num_bytes = 0
        self.beginning = b""
        self._look_at = _BYTES_BETWEEN_LOOKS
        directory.mkdir(parents=True, exist_ok=True)
        self._check_space(directory)
        self.path, self._descriptor = _create(directory)

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes written so far."""
        return self._sha256.hexdigest()

    def write(self, data: bytes | bytearray) -> None:
        """Appends data."""
        if self.num_bytes >= self._look_at:
            self._check_space(self.path)
            self._look_at = self.num_bytes + _BYTES_BETWEEN_LOOKS
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self._sha256.update(data)
        self.num_bytes += len(data)
        missing = BEGINNING_BYTES - len(self.beginning)
        if missing:
            self.beginning += bytes(data[:missing])

    def sync(self) -> None:
        """Flushes the file to the disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Closes the file, and removes it unless it was moved."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            # The next start removes it.
            logger.warning("could not remove an unfinished upload: %s", error)
        finally:
            os.close(self._descriptor)

    def _check_space(self, path: Path) -> None:
        free = shutil.disk_usage(path).free
        if free < self._min_free_bytes:
            raise InsufficientStorage(
                f"The disk has {free} free bytes, but {self._min_free_bytes} must stay "
                "free (TFBBB_MIN_FREE_BYTES); delete datasets, or ask the operator of "
                "the service for space."
            )


def sweep_uploads(directory: Path) -> None:
    """Removes uploads whose writers are dead."""
    for path in directory.glob("*.upload"):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
            logger.info("removed the unfinished upload %s", path.name)
        except BlockingIOError:
            continue
        except OSError as error:
            logger.warning("could not remove an unfinished upload: %s", error)
        finally:
            os.close(descriptor)


def _create(directory: Path) -> tuple[Path, int]:
    while True:
        path = directory / f"{new_id()}.upload"
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            # A sweep may have removed the file before it was locked.
            if os.fstat(descriptor).st_nlink:
                return path, descriptor
        os.close(descriptor)
