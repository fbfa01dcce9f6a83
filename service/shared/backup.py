"""Backs up a service while it runs."""

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
from tfbbb.base.files import flush

logger = logging.getLogger(__name__)

_DATABASE = "tfbbb.sqlite3"
_UNFINISHED = ".unfinished-tfbbb-backup"
_LOCK = ".lock"


class BackupError(Exception):
    """A backup cannot be made; the message has the reason."""


def back_up(database: Database, settings: Settings, destination: Path) -> list[str]:
    """Copies the database, the datasets, the logs of jobs and the models.

    Files never change after they are stored. They are copied before the database,
    because some may be deleted meanwhile, and again after it, because some may be
    added: the backup has every file to which the database refers, and perhaps more. The
    destination is renamed into place, so it is always a complete backup.

    Datasets and models in an object store are not copied: such a storage has copies
    and versions of its own.

    First removes what killed backups left beside the destination.
    """
    if destination.exists():
        raise BackupError(f"{destination} exists already; name a new directory.")
    _check_models(database, settings)
    destination.parent.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(destination.parent)
    with _staging(destination) as staging:
        _copy_files(settings, staging)
        if database.path is not None:
            copy_sqlite(database.path, staging / _DATABASE)
            _copy_files(settings, staging)
        # All files must be on the disk before the backup gets its name.
        os.sync()
        staging.rename(destination)
        (destination / _LOCK).unlink()
        flush(destination)
        flush(destination.parent)
    return sorted(path.name for path in destination.iterdir())


def _check_models(database: Database, settings: Settings) -> None:
    """Raises `BackupError` if the backup would lack the models of the database."""
    if settings.store is not None or settings.models.is_dir():
        return
    with database.reading() as session:
        kept = sqlalchemy.select(ModelVersion).where(ModelVersion.deleted_at.is_(None))
        version = session.scalars(kept.limit(1)).first()
    if version is not None:
        raise BackupError(
            f"The directory of models {settings.models} does not exist, but the "
            f"database has version {version.number} of {version.name!r}; name the "
            "models directory of the service with --models."
        )


@contextmanager
def _staging(destination: Path) -> Iterator[Path]:
    """Yields a directory to copy into, which this process keeps locked."""
    while True:
        staging = destination.with_name(f".{destination.name}.{new_id()}{_UNFINISHED}")
        staging.mkdir(mode=0o700)
        lock = os.open(staging / _LOCK, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        # Another backup may have removed it as unfinished before it was locked.
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
            continue  # Empty, not a directory, or another user's.
        try:
            if _is_locked_by_us(lock):
                shutil.rmtree(staging)
                logger.info("removed the unfinished backup %s", staging)
        except OSError as error:
            logger.warning("could not remove an unfinished backup: %s", error)
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
    _copy(data / "jobs", destination / "jobs", only="log.txt")
    if settings.store is None:
        _copy(data / "datasets", destination / "datasets")
        with suppress(FileNotFoundError):
            shutil.copy2(data / "identity", destination / "identity")
        _copy(settings.models, destination / "models")


def _copy(source: Path, destination: Path, only: str | None = None) -> None:
    """Copies new files from a tree that other processes may change."""
    for place, names, files in os.walk(source):
        # Files and directories with a leading dot are incomplete.
        names[:] = [name for name in names if not name.startswith(".")]
        target = destination / Path(place).relative_to(source)
        target.mkdir(parents=True, exist_ok=True)
        for name in files:
            wanted = only in (None, name) and not name.startswith(".")
            if wanted and not (target / name).exists():
                with suppress(FileNotFoundError):  # Deleted meanwhile.
                    shutil.copy2(Path(place, name), target / name)
