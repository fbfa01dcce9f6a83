"""Creates the tables of a database, or brings them up to date."""

import fcntl
import logging
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy

from service.shared.database.database import Database

logger = logging.getLogger(__name__)

_MIGRATIONS = Path(__file__).parent / "migrations"

# Any number that no other lock in the same PostgreSQL database uses.
_LOCK = 0x7466626262


class DatabaseVersionError(Exception):
    """The database has tables of another version; the message has the remedy."""


def upgrade(database: Database) -> None:
    """Runs the migrations that the database lacks, in one process at a time."""
    if database.path is not None:
        database.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _exclusive_lock(database):
        if database.path is not None:
            database.path.touch()
        known, current = revisions(), revision(database)
        if current not in (None, *known):
            raise DatabaseVersionError(
                f"Another version of tfbbb wrote the database {database.name}, which "
                "this version cannot use: name a new data directory (--data-dir), and "
                "on PostgreSQL a new database (--database-url). The models directory "
                f"(--models) is served as it is. Received: revision {current}"
            )
        if current != known[-1]:
            logger.info(
                "%s the tables of the database %s",
                "creating" if current is None else "upgrading",
                database.name,
            )
            _migrate(database)
        _mark(database)


def revisions() -> list[str]:
    """Returns the revisions of this program, in order: `versions/REVISION_TITLE.py`."""
    return sorted(
        path.stem.partition("_")[0] for path in _MIGRATIONS.glob("versions/*.py")
    )


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
