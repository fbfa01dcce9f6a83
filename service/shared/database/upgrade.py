"""Bringing a database to the tables of this version."""

import fcntl
import logging
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy

from service.shared.database.database import Database

logger = logging.getLogger(__name__)

_MIGRATIONS = Path(__file__).parent / "migrations"

_UNFINISHED = "unfinished-"

# Any number that nothing else locks in the same PostgreSQL database.
_LOCK = 0x7466626262


class NewerDatabaseError(Exception):
    """The database was made by a later version of this program."""


def upgrade(database: Database, copies: Path) -> None:
    """Runs the migrations that the database lacks; one process at a time does.

    An SQLite file that lacks any is copied first.

    Args:
        database: The database; an empty one is filled with tables.
        copies: Directory for the copy, `before-REVISION-TIME.sqlite3`.

    Raises:
        NewerDatabaseError: If the database is ahead of this program.
    """
    if database.path is not None:
        database.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(database):
        if database.path is not None:
            database.path.touch()
        known, current = revisions(), revision(database)
        if current == known[-1]:
            _mark(database)
            return
        if current is not None and current not in known:
            raise NewerDatabaseError(
                "The database was made by a later version of tfbbb, and an older one "
                "can't go back: install the later version, or restore the copy made "
                f"before the upgrade. Received: revision {current}"
            )
        if current is not None and database.path is not None:
            name = f"before-{known[-1]}-{time.strftime('%Y%m%dT%H%M%S')}.sqlite3"
            copies.mkdir(parents=True, exist_ok=True)
            for unfinished in copies.glob(f"{_UNFINISHED}*"):
                unfinished.unlink()
            copy_sqlite(database.path, copies / f"{_UNFINISHED}{name}")
            (copies / f"{_UNFINISHED}{name}").rename(copies / name)
            logger.info("the database was copied to %s", copies / name)
        _migrate(database)
        _mark(database)


def revisions() -> list[str]:
    """The migrations of this program, from the first: `versions/REVISION_TITLE.py`."""
    names = sorted(path.name for path in _MIGRATIONS.glob("versions/*.py"))
    return [name.partition("_")[0] for name in names]


def revision(database: Database) -> str | None:
    """The newest migration that the database has had, if any."""
    with database.engine.connect() as connection:
        if not sqlalchemy.inspect(connection).has_table("alembic_version"):
            return None
        version = sqlalchemy.text("select version_num from alembic_version")
        current: str | None = connection.scalar(version)
        return current


def _migrate(database: Database) -> None:
    # Takes as long to import as the web framework, and is needed once per upgrade.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    with database.engine.execution_options(immediate=True).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _mark(database: Database) -> None:
    """Gives an SQLite file the number by which `SqliteFile` tells it from others."""
    if database.path is None:
        return
    with closing(sqlite3.connect(database.path, isolation_level=None)) as connection:
        if not connection.execute("PRAGMA application_id").fetchone()[0]:
            mark = secrets.randbelow(2**31 - 1) + 1
            connection.execute(f"PRAGMA application_id = {mark}")
            # From the log into the file.
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def copy_sqlite(source: Path, destination: Path) -> None:
    """Copies an SQLite database, also while others write to it.

    The copy lacks the mark of the file: put in its place, it is noticed.
    """
    uri = f"{source.absolute().as_uri()}?mode=rw"
    with (
        closing(sqlite3.connect(uri, uri=True)) as connection,
        closing(sqlite3.connect(destination)) as copy,
    ):
        connection.backup(copy)
        copy.execute("PRAGMA application_id = 0")


@contextmanager
def _alone(database: Database) -> Iterator[None]:
    """Lets one process at a time into the body."""
    if database.path is not None:
        with database.path.with_name(f"{database.path.name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        return
    with database.engine.begin() as connection:
        lock = sqlalchemy.func.pg_advisory_xact_lock(_LOCK)
        connection.execute(sqlalchemy.select(lock))
        yield
