"""Backs up a service while it runs."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import sqlalchemy

from service.shared.database import Database, new_id
from service.shared.database.tables import ModelVersion
from service.shared.settings import Settings
from tfbbb.base.files import flush

_DATABASE = "tfbbb.sqlite3"


class BackupError(Exception):
    """A backup cannot be made; the message has the reason."""


def back_up(database: Database, settings: Settings, destination: Path) -> list[str]:
    """Copies the database, the datasets, the logs of jobs and the models.

    Files never change. They are copied before the database, as some may be deleted
    meanwhile, and again after it, as some may be added: the backup has every file to
    which the database refers. An object store has its own backup.
    """
    if destination.exists():
        raise BackupError(f"{destination} exists already; name a new directory.")
    _check_models(database, settings)
    destination.parent.mkdir(parents=True, exist_ok=True)
    with _staging(destination) as staging:
        _copy_files(settings, staging)
        if database.path is not None:
            _copy_sqlite(database.path, staging / _DATABASE)
            _copy_files(settings, staging)
        # All files must be on the disk before the backup gets its name.
        os.sync()
        staging.rename(destination)
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
    """Yields a directory to copy into; removes it if the backup fails."""
    staging = destination.with_name(f".{destination.name}.{new_id()}.unfinished")
    staging.mkdir(mode=0o700)
    try:
        yield staging
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _copy_sqlite(source: Path, destination: Path) -> None:
    """Copies an SQLite database, also while other processes write to it."""
    uri = f"{source.absolute().as_uri()}?mode=rw"
    with (
        closing(sqlite3.connect(uri, uri=True)) as connection,
        closing(sqlite3.connect(destination)) as copy,
    ):
        connection.backup(copy)


def _copy_files(settings: Settings, destination: Path) -> None:
    data = settings.data_dir
    _copy(data / "jobs", destination / "jobs", only="log.txt")
    if settings.store is None:
        _copy(data / "datasets", destination / "datasets")
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
