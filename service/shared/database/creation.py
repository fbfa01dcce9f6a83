"""Creates the tables of a database, and refuses those of another version."""

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy

from service.shared.database.database import Database
from service.shared.database.tables import Base, TablesVersion

logger = logging.getLogger(__name__)

# Raise it with every change of the tables. 0001 to 0012 were those of version 0.2.
VERSION = "0014"

# Any number that no other lock in the same PostgreSQL database uses.
_LOCK = 0x7466626262


class DatabaseVersionError(Exception):
    """The database has tables of another version; the message has the remedy."""


def create_tables(database: Database) -> None:
    """Creates the tables that a database lacks, in one process at a time."""
    if database.path is not None:
        database.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _exclusive_lock(database):
        if database.path is not None:
            database.path.touch()
        found = tables_version(database)
        if found == VERSION:
            return
        if found is not None:
            raise DatabaseVersionError(
                f"Another version of tfbbb wrote the database {database.name}, which "
                "this version cannot use: name a new data directory (--data-dir), and "
                "on PostgreSQL a new database (--database-url). The models directory "
                f"(--models) is served as it is. Received: version {found}"
            )
        logger.info("creating the tables of the database %s", database.name)
        engine = database.engine.execution_options(immediate=True)
        with engine.begin() as connection:
            Base.metadata.create_all(connection)
            row = {"version_num": VERSION}
            connection.execute(sqlalchemy.insert(TablesVersion), row)


def tables_version(database: Database) -> str | None:
    """Returns the version of the tables of a database; None if it has none."""
    with database.engine.connect() as connection:
        if not sqlalchemy.inspect(connection).has_table(TablesVersion.__tablename__):
            return None
        version: str | None = connection.scalar(
            sqlalchemy.select(TablesVersion.version_num)
        )
        return version


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
