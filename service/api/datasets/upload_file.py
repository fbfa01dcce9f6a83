"""The temporary file of an upload."""

import hashlib
import logging
import os
import shutil
import tempfile
import time
from pathlib import Path

from service.shared.errors import InsufficientStorage
from tfbbb.tables.format import BEGINNING_BYTES

logger = logging.getLogger(__name__)

_BYTES_BETWEEN_LOOKS = 2**25
# An upload, or a prediction of an uploaded file, takes less.
_SECONDS_OF_AN_UPLOAD = 24 * 3600.0


class UploadFile:
    """A file that is being written, in a directory of uploads."""

    def __init__(self, directory: Path, min_free_bytes: int) -> None:
        self._min_free_bytes = min_free_bytes
        self._sha256 = hashlib.sha256()
        self.num_bytes = 0
        self.beginning = b""
        self._look_at = _BYTES_BETWEEN_LOOKS
        directory.mkdir(parents=True, exist_ok=True)
        self._check_space(directory)
        self._descriptor, path = tempfile.mkstemp(".upload", dir=directory)
        self.path = Path(path)
        os.fchmod(self._descriptor, 0o640)

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
    """Removes the uploads of processes that died."""
    for path in directory.glob("*.upload"):
        try:
            if time.time() - path.stat().st_mtime > _SECONDS_OF_AN_UPLOAD:
                path.unlink()
                logger.info("removed the unfinished upload %s", path.name)
        except OSError as error:
            logger.warning("could not remove an unfinished upload: %s", error)
