"""Copies of all that a service knows, taken while it runs."""

import fcntl
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy

from service.shared.database import Database, new_id
from service.shared.database.tables import ModelVersion
from service.shared.database.upgrade import copy_sqlite
from service.shared.settings import Settings
from tfbbb.flushing import flush

logger = logging.getLogger(__name__)

_DATABASE = "tfbbb.sqlite3"
_UNFINISHED = ".unfinished-tfbbb-backup"
_LOCK = ".lock"


class BackupError(Exception):
    """A backup can't be made there; the message says why."""


def back_up(database: Database, settings: Settings, destination: Path) -> list[str]:
    """Copies the database, the datasets, the logs of jobs and the models.

    Files never change once they are. They are copied before the database, for those
    that are deleted meanwhile, and after it, for those that were added: whatever the
    database names is there. What more there is does no harm. A directory that has its
    name is a whole backup.

    What a killed backup left beside the destination is removed first.

    Args:
        database: The database; PostgreSQL has its own `pg_dump`, and is left to it.
        settings: Where the files are.
        destination: A directory that is not there yet.

    Returns:
        What is in the backup.

    Raises:
        BackupError: If there is something at the destination, or the directory of
            models is not the service's.
    """
    if destination.exists():
        raise BackupError(
            f"There is something at {destination} already; name a new directory."
        )
    _check_models(database, settings)
    destination.parent.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(destination.parent)
    with _staging(destination) as staging:
        _copy_files(settings, staging)
        if database.path is not None:
            copy_sqlite(database.path, staging / _DATABASE)
            _copy_files(settings, staging)
        # The disk holds all of it before anybody can take it for whole.
        os.sync()
        staging.rename(destination)
        (destination / _LOCK).unlink()
        flush(destination)
        flush(destination.parent)
    return sorted(path.name for path in destination.iterdir())


def _check_models(database: Database, settings: Settings) -> None:
    """Raises `BackupError` if the backup would lack the models of the database."""
    if settings.models.is_dir():
        return
    with database.reading() as session:
        kept = sqlalchemy.select(ModelVersion).where(ModelVersion.deleted_at.is_(None))
        version = session.scalars(kept.limit(1)).first()
    if version is not None:
        raise BackupError(
            f"The directory of models {settings.models} does not exist, but the "
            f"database knows version {version.number} of {version.name!r}; name with "
            "--models the directory that the service has."
        )


@contextmanager
def _staging(destination: Path) -> Iterator[Path]:
    """Gives a directory to copy into, locked while this process lives."""
    while True:
        staging = destination.with_name(f".{destination.name}.{new_id()}{_UNFINISHED}")
        staging.mkdir(mode=0o700)
        lock = os.open(staging / _LOCK, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        # Another backup may take it for unfinished before it is locked.
        if _is_locked_by_us(lock) and os.fstat(lock).st_nlink:
            break
        os.close(lock)
    try:
        yield staging
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    finally:
        os.close(lock)


def _remove_unfinished(directory: Path) -> None:
    """Removes the files that killed backups left in a directory."""
    for staging in directory.glob(f".*{_UNFINISHED}"):
        try:
            lock = os.open(staging / _LOCK, os.O_WRONLY)
        except OSError:
            continue  # It holds nothing yet, is no directory, or another user's.
        try:
            if _is_locked_by_us(lock):
                shutil.rmtree(staging)
                logger.info("removed an unfinished backup, %s", staging)
        except OSError as error:
            logger.warning("an unfinished backup stays: %s", error)
        finally:
            os.close(lock)


def _is_locked_by_us(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _copy_files(settings: Settings, destination: Path) -> None:
    data = settings.data_dir
    _copy(data / "datasets", destination / "datasets")
    _copy(data / "jobs", destination / "jobs", only="log.txt")
    _copy(settings.models, destination / "models")


def _copy(source: Path, destination: Path, only: str | None = None) -> None:
    """Copies new files from a tree that other processes change meanwhile."""
    for place, names, files in os.walk(source):
        # What has a leading dot is still being made.
        names[:] = [name for name in names if not name.startswith(".")]
        target = destination / Path(place).relative_to(source)
        target.mkdir(parents=True, exist_ok=True)
        for name in files:
            wanted = only in (None, name) and not name.startswith(".")
            if wanted and not (target / name).exists():
                with suppress(FileNotFoundError):  # Deleted meanwhile.
                    shutil.copy2(Path(place, name), target / name)
