"""Upgrades a database to the tables of this version."""

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

# Any number that no other lock in the same PostgreSQL database uses.
_LOCK = 0x7466626262


class NewerDatabaseError(Exception):
    """A later version of this program wrote the database."""


def upgrade(database: Database, copies: Path) -> None:
    """Runs the migrations that the database lacks, in one process at a time.

    Copies an SQLite file before a migration.

    Args:
        database: The database; an empty one gets all tables.
        copies: Directory for the copy, `before-REVISION-TIME.sqlite3`.

    Raises:
        NewerDatabaseError: If a later version of this program wrote the database.
    """
    if database.path is not None:
        database.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _exclusive_lock(database):
        if database.path is not None:
            database.path.touch()
        known, current = revisions(), revision(database)
        if current == known[-1]:
            _mark(database)
            return
        if current is not None and current not in known:
            raise NewerDatabaseError(
                "A later version of tfbbb wrote the database, which this version "
                "cannot read: install the later version, or restore the copy made "
                f"before the upgrade. Received: revision {current}"
            )
        if current is not None and database.path is not None:
            name = f"before-{known[-1]}-{time.strftime('%Y%m%dT%H%M%S')}.sqlite3"
            copies.mkdir(parents=True, exist_ok=True)
            for unfinished in copies.glob(f"{_UNFINISHED}*"):
                unfinished.unlink()
            copy_sqlite(database.path, copies / f"{_UNFINISHED}{name}")
            (copies / f"{_UNFINISHED}{name}").rename(copies / name)
            logger.info("copied the database to %s", copies / name)
        _migrate(database)
        _mark(database)


def revisions() -> list[str]:
    """Returns the revisions of this program, in order: `versions/REVISION_TITLE.py`."""
    names = sorted(path.name for path in _MIGRATIONS.glob("versions/*.py"))
    return [name.partition("_")[0] for name in names]


def revision(database: Database) -> str | None:
    """Returns the latest revision of the database, or None."""
    with database.engine.connect() as connection:
        if not sqlalchemy.inspect(connection).has_table("alembic_version"):
            return None
        version = sqlalchemy.text("select version_num from alembic_version")
        current: str | None = connection.scalar(version)
        return current


def _migrate(database: Database) -> None:
    # Imported late: alembic takes as long as the web framework, and is rarely needed.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    with database.engine.execution_options(immediate=True).begin() as connection:
        database.allow_seconds(connection, None)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _mark(database: Database) -> None:
    """Gives an SQLite file the random number by which `SqliteFile` recognises it."""
    if database.path is None:
        return
    with closing(sqlite3.connect(database.path, isolation_level=None)) as connection:
        if not connection.execute("PRAGMA application_id").fetchone()[0]:
            mark = secrets.randbelow(2**31 - 1) + 1
            connection.execute(f"PRAGMA application_id = {mark}")
            # Moves the number from the log into the file.
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def copy_sqlite(source: Path, destination: Path) -> None:
    """Copies an SQLite database, also while other processes write to it.

    The copy lacks the random number, so that a running service notices a copy in place
    of its file.
    """
    uri = f"{source.absolute().as_uri()}?mode=rw"
    with (
        closing(sqlite3.connect(uri, uri=True)) as connection,
        closing(sqlite3.connect(destination)) as copy,
    ):
        connection.backup(copy)
        copy.execute("PRAGMA application_id = 0")


@contextmanager
def _exclusive_lock(database: Database) -> Iterator[None]:
    """Runs the block in one process at a time."""
    if database.path is not None:
        with database.path.with_name(f"{database.path.name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        return
    with database.engine.begin() as connection:
        database.allow_seconds(connection, None)
        lock = sqlalchemy.func.pg_advisory_xact_lock(_LOCK)
        connection.execute(sqlalchemy.select(lock))
        yield
