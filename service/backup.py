"""Copies of all that a service knows, taken while it runs."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from service.database import Database
from service.database.upgrade import copy_sqlite
from service.settings import Settings
from tfbbb.flushing import flush

_DATABASE = "tfbbb.sqlite3"


class BackupError(Exception):
    """A backup can't be made there; the message says why."""


def back_up(database: Database, settings: Settings, destination: Path) -> list[str]:
    """Copies the database, the datasets, the logs of jobs and the models.

    Files never change once they are. They are copied before the database, for those
    that are deleted meanwhile, and after it, for those that were added: whatever the
    database names is there. What more there is does no harm. A directory that has its
    name is a whole backup.

    Args:
        database: The database; PostgreSQL has its own `pg_dump`, and is left to it.
        settings: Where the files are.
        destination: A directory that is not there yet.

    Returns:
        What is in the backup.

    Raises:
        BackupError: If there is something at the destination.
    """
    if destination.exists():
        raise BackupError(
            f"There is something at {destination} already; name a new directory."
        )
    destination.parent.mkdir(parents=True, exist_ok=True)
    staging = destination.with_name(f".{destination.name}.{os.getpid()}")
    staging.mkdir(mode=0o700)
    try:
        _copy_files(settings, staging)
        if database.path is not None:
            copy_sqlite(database.path, staging / _DATABASE)
            _copy_files(settings, staging)
        # The disk holds all of it before anybody can take it for whole.
        os.sync()
        staging.rename(destination)
        flush(destination.parent)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return sorted(path.name for path in destination.iterdir())


def _copy_files(settings: Settings, destination: Path) -> None:
    data = settings.data_dir
    _copy(data / "datasets", destination / "datasets")
    _copy(data / "jobs", destination / "jobs", only="log.txt")
    _copy(settings.models, destination / "models")


def _copy(source: Path, destination: Path, only: str | None = None) -> None:
    """Copies what is new in a tree that others add to and remove from meanwhile."""
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
