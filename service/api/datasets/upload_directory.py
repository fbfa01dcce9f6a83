"""The temporary directory of an upload of several files."""

import fcntl
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from service.api.datasets.upload_file import UploadFile
from service.shared.database import new_id
from service.shared.files import parts_sha256
from tfbbb.base.files import flush
from tfbbb.tables.format import Format, part_path


class UploadDirectory:
    """Files that are one table, moved to a directory of their own.

    The directory is locked, as an `UploadFile` is.
    """

    def __init__(
        self, directory: Path, files: Sequence[UploadFile], formats: Sequence[Format]
    ) -> None:
        self.num_bytes = sum(file.num_bytes for file in files)
        digests = [file.sha256 for file in files]
        self.sha256 = parts_sha256(zip(digests, formats, strict=True))
        name = new_id()
        self.path = directory / f"{name}.upload"
        # A sweep would remove an upload that is not locked yet.
        unlocked = directory / f".{name}"
        unlocked.mkdir(mode=0o750)
        self._descriptor = os.open(unlocked, os.O_RDONLY)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        unlocked.rename(self.path)
        self._files = files
        pairs = zip(files, formats, strict=True)
        try:
            for number, (file, format) in enumerate(pairs, start=1):
                file.move(part_path(self.path, number, format))
        except OSError:
            self.close()
            raise

    def sync(self) -> None:
        """Flushes the files and the directory to the disk."""
        for file in self._files:
            file.sync()
        flush(self.path)

    def close(self) -> None:
        """Removes the directory unless it was moved."""
        try:
            shutil.rmtree(self.path, ignore_errors=True)
        finally:
            os.close(self._descriptor)
