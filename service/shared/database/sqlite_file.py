"""Detects that an SQLite file is no longer the one that was opened."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import NoReturn

from sqlalchemy.exc import OperationalError

_BEGIN_AGAIN = (
    "stop the service, restore a backup and start the service again. Until then the "
    "service refuses every change."
)


class DatabaseFileError(OperationalError):
    """The SQLite file was deleted, replaced or overwritten; `orig` has the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(None, None, sqlite3.OperationalError(message))


class SqliteFile:
    """The file of an SQLite database, and the two files that SQLite keeps beside it.

    If a file is deleted or replaced, open connections continue with the old file, while
    other processes open the new one: later writes are lost, or damage both. Therefore
    `check` compares device and inode of the files with those of the opened files.

    An overwritten file keeps its inode. To detect it, the header has a random number
    (`PRAGMA application_id`, set by `upgrade`), which no other database and no backup
    has. Only checkpoints write to the file, so the header is read again only when the
    time or size of the file has changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._beside = [Path(f"{self.path}-wal"), Path(f"{self.path}-shm")]
        self._identities: dict[Path, tuple[int, int]] = {}
        self._num_connections = 0
        self._counting = threading.Lock()
        self._mark = 0
        self._verified = (0, 0)
        self._damage: str | None = None

    def opened(self) -> None:
        """Counts a connection that was opened."""
        with self._counting:
            if self.path not in self._identities:
                self._identities[self.path] = _identity(self.path.stat())
            if self._num_connections == 0:
                # SQLite deletes these files with the last connection of all processes.
                for path in self._beside:
                    self._identities[path] = _identity(path.stat())
            self._num_connections += 1

    def closed(self) -> None:
        """Counts a connection that was closed."""
        with self._counting:
            self._num_connections -= 1
            if self._num_connections == 0:
                for path in self._beside:
                    self._identities.pop(path, None)

    def check(self) -> None:
        """Raises `DatabaseFileError` if a file is not the one that was opened."""
        if self._damage is not None:
            raise DatabaseFileError(self._damage)
        for path, identity in list(self._identities.items()):
            try:
                found = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                self._raise_lost(path, "was deleted or moved")
            if _identity(found) != identity:
                self._raise_lost(path, "was replaced by another file")
            if path == self.path:
                self._check_content(found)

    def raise_damaged(self, reason: str) -> NoReturn:
        """Raises `DatabaseFileError` now and in every later check."""
        self._damage = (
            f"The database file {self.path.name} is damaged ({reason}): {_BEGIN_AGAIN}"
        )
        raise DatabaseFileError(self._damage)

    def _check_content(self, found: os.stat_result) -> None:
        state = (found.st_mtime_ns, found.st_size)
        if state == self._verified:
            return
        shrunk = found.st_size < self._verified[1]
        try:
            mark = self._read_mark()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                self._raise_overwritten("is no longer an SQLite database")
            if shrunk:
                self._raise_overwritten("was truncated")
            # A checkpoint writes the header first; the next check reads it again.
            return
        if shrunk and not found.st_size:
            self._raise_overwritten("was truncated")
        if self._mark and mark != self._mark:
            self._raise_overwritten("was overwritten with another database")
        self._mark, self._verified = mark, state

    def _read_mark(self) -> int:
        # Must be read with SQLite: closing a file descriptor of Python would release
        # all locks of this process on the file. `immutable` ignores the log.
        uri = f"{self.path.as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            mark: int = connection.execute("PRAGMA application_id").fetchone()[0]
        return mark

    def _raise_lost(self, path: Path, what: str) -> NoReturn:
        raise DatabaseFileError(
            f"The database file {path.name} {what}: put the same file back, or "
            f"{_BEGIN_AGAIN}"
        )

    def _raise_overwritten(self, what: str) -> NoReturn:
        raise DatabaseFileError(
            f"The database file {self.path.name} {what}: {_BEGIN_AGAIN}"
        )


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
