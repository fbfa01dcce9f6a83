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
from sqlalchemy.exc import OperationalError

from service.shared.database.database import Database
from service.shared.database.tables import Installation

logger = logging.getLogger(__name__)

_MIGRATIONS = Path(__file__).parent / "migrations"

_UNFINISHED = "unfinished-"

# Any number that no other lock in the same PostgreSQL database uses.
_LOCK = 0x7466626262

# Longest time for which a migration waits for the locks of requests, and tries.
_LOCK_SECONDS, _TRIES = 2, 60


class NewerDatabaseError(Exception):
    """A later version of this program wrote the database."""


def upgrade(database: Database, copies: Path) -> None:
    """Runs the migrations that the database lacks, in one process at a time.

    Copies an SQLite file before a migration. On PostgreSQL services of the version
    before go on meanwhile, unless a migration is marked as breaking. A database of a
    later version is used as it is, unless it has a breaking migration.
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
            if _oldest_program(database) in known:
                logger.warning(
                    "a later version of tfbbb has upgraded the database %s to revision "
                    "%s, which this version can use too",
                    database.name,
                    current,
                )
                _mark(database)
                return
            raise NewerDatabaseError(
                "A later version of tfbbb wrote the database, which this version "
                "cannot read: install the later version, or restore the copy made "
                f"before the upgrade. Received: revision {current}"
            )
        if current is None:
            logger.info("creating the tables of the database %s", database.name)
        else:
            titles, missing = _titles(), known[known.index(current) + 1 :]
            logger.info(
                "upgrading the database %s from revision %s: %s",
                database.name,
                current,
                ", ".join(f"{name} {titles.get(name, '')}".strip() for name in missing),
            )
            _copy(database, copies, known[-1])
        _migrate(database)
        _mark(database)
        logger.info("the database has revision %s", known[-1])


def _copy(database: Database, copies: Path, revision: str) -> None:
    """Copies an SQLite file before its upgrade to a revision."""
    if database.path is None:
        logger.info("made no copy of PostgreSQL, of which `pg_dump` makes one")
        return
    name = f"before-{revision}-{time.strftime('%Y%m%dT%H%M%S')}.sqlite3"
    copies.mkdir(parents=True, exist_ok=True)
    for unfinished in copies.glob(f"{_UNFINISHED}*"):
        unfinished.unlink()
    copy_sqlite(database.path, copies / f"{_UNFINISHED}{name}")
    (copies / f"{_UNFINISHED}{name}").rename(copies / name)
    logger.info("copied the database to %s", copies / name)


def revisions() -> list[str]:
    """Returns the revisions of this program, in order: `versions/REVISION_TITLE.py`."""
    return sorted(_titles())


def _titles() -> dict[str, str]:
    """Returns the titles of the revisions of this program."""
    names = [path.stem.partition("_") for path in _MIGRATIONS.glob("versions/*.py")]
    return {revision: title.replace("_", " ") for revision, _, title in names}


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
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    newest_first = ScriptDirectory.from_config(config).walk_revisions()
    oldest = next(s.revision for s in newest_first if hasattr(s.module, "breaking"))

    def migrate() -> None:
        with database.engine.execution_options(immediate=True).begin() as connection:
            database.allow_seconds(connection, None)
            if database.path is None:
                # Requests of running services wait behind a statement that waits.
                limit = f"{1000 * _LOCK_SECONDS:g}ms"
                limited = sqlalchemy.func.set_config("lock_timeout", limit, True)
                connection.execute(sqlalchemy.select(limited))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            row = sqlalchemy.update(Installation).values(oldest_program=oldest)
            connection.execute(row)

    tries = _TRIES if database.path is None else 1
    while True:
        try:
            return migrate()
        except OperationalError as error:
            tries -= 1
            if not tries:
                raise
            why = str(error.orig).partition("\n")[0]
            logger.warning("the upgrade is tried again in 1 s: %s", why)
            time.sleep(1.0)


def _oldest_program(database: Database) -> str | None:
    """Returns the last revision that programs before it cannot use, or None."""
    with database.engine.connect() as connection:
        if not sqlalchemy.inspect(connection).has_table(Installation.__tablename__):
            return None
        oldest = sqlalchemy.text("select oldest_program from installation")
        found: str | None = connection.scalar(oldest)
        return found


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
