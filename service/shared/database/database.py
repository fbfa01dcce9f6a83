"""Connects to SQLite or PostgreSQL, and runs transactions."""

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy
from sqlalchemy import Dialect, Engine, event
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from service.shared.database.audit import AuditedSession
from service.shared.errors import Unavailable

logger = logging.getLogger(__name__)

# The errors of a database that does not answer, or accepts no writes, which PostgreSQL
# reports as an internal error.
LOST = (OperationalError, InterfaceError, InternalError)

_BUSY_SECONDS = 30
_SILENT_SECONDS = 60

_LIMITS = sqlalchemy.select(
    sqlalchemy.func.set_config("lock_timeout", f"{_BUSY_SECONDS}s", True),
    sqlalchemy.func.set_config(
        "idle_in_transaction_session_timeout", f"{_SILENT_SECONDS}s", True
    ),
)


def timestamp(seconds: float) -> str:
    """Formats a time of the database, seconds since 1970, as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


class Database:
    """The database of the service, SQLite or PostgreSQL.

    A writing transaction of SQLite takes the write lock at its start (`BEGIN
    IMMEDIATE`), so that what it has read does not change before its commit. PostgreSQL
    locks rows that are selected `FOR UPDATE`, which SQLite ignores. An SQLite file must
    exist: `create_tables` creates it.
    """

    def __init__(self, url: str) -> None:
        parsed = sqlalchemy.make_url(url)
        if parsed.get_backend_name() == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        elif parsed.get_backend_name() != "sqlite" or not parsed.database:
            raise ValueError(
                "The database must be `sqlite:///PATH` or `postgresql://...`. "
                f"Received: {parsed.render_as_string(hide_password=True)}"
            )
        self.url = parsed
        self.engine = _sqlite(parsed) if self.is_sqlite else _postgresql(parsed)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is SQLite."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def path(self) -> Path | None:
        """Path of the SQLite file; None for PostgreSQL."""
        return Path(self.url.database) if self.is_sqlite and self.url.database else None

    @property
    def name(self) -> str:
        """The path or URL of the database, without a password, for messages."""
        if self.path is not None:
            return str(self.path)
        shown = self.url.set(drivername="postgresql")
        return shown.render_as_string(hide_password=True)

    def wait(self, seconds: float = 60.0) -> None:
        """Waits for a PostgreSQL server that does not answer yet."""
        give_up_at, pause = time.monotonic() + seconds, 0.5
        while not self.is_sqlite:
            try:
                with self.engine.connect():
                    return
            except OperationalError as error:
                left = give_up_at - time.monotonic()
                if left <= 0:
                    raise
                why = " ".join(str(error.orig).split())
                logger.warning("waiting %.0f s more for the database: %s", left, why)
                time.sleep(min(pause, left))
                pause = min(2 * pause, 10.0)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Runs a read-only transaction, which sees one state of the database."""
        engine = self.engine
        if not self.is_sqlite:
            engine = engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        with Session(engine, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Runs an audited transaction, which commits at its end or rolls back."""
        engine = self.engine.execution_options(immediate=True)
        with (
            AuditedSession(
                engine, expire_on_commit=False, info={"now": self.now}
            ) as session,
            session.begin(),
        ):
            if not self.is_sqlite:
                self.allow_seconds(session.connection(), _BUSY_SECONDS)
                session.execute(_LIMITS)
            yield session

    def lock(self, session: Session, name: str) -> None:
        """Locks a name until the commit; SQLite has only one writer anyway."""
        if not self.is_sqlite:
            number = sqlalchemy.func.hashtext(name)
            session.execute(
                sqlalchemy.select(sqlalchemy.func.pg_advisory_xact_lock(number))
            )

    def allow_seconds(
        self, connection: sqlalchemy.Connection, seconds: float | None
    ) -> None:
        """Lets each further statement of a PostgreSQL connection wait for locks."""
        if not self.is_sqlite:
            # Imported late: most services have no PostgreSQL.
            from service.shared.database import postgresql

            postgresql.allow_seconds(connection, seconds)

    def now(self, session: Session) -> float:
        """Returns the time of the clock that all processes on the database share."""
        if self.is_sqlite:
            return time.time()
        clock = sqlalchemy.text("select extract(epoch from clock_timestamp())")
        return float(session.scalar(clock) or 0.0)

    def close(self) -> None:
        """Closes the connections."""
        self.engine.dispose()


@contextmanager
def report_outage(what: str = "The database does not answer") -> Iterator[None]:
    """Raises `Unavailable` in place of an error of the database."""
    try:
        yield
    except DBAPIError as error:
        logger.warning("%s: %s", what, error.orig)
        # PostgreSQL's reason names the host, which no client needs.
        is_local = type(error.orig).__module__ == "sqlite3"
        reason = f": {error.orig}" if is_local else "; retry in a few seconds."
        raise Unavailable(f"{what}{reason}") from None


def _sqlite(url: sqlalchemy.URL) -> Engine:
    # Python must not begin transactions itself: `_begin` chooses the kind.
    options = {"timeout": _BUSY_SECONDS, "isolation_level": None, "uri": True}
    engine = sqlalchemy.create_engine(url, connect_args=options)
    file = Path(url.database or "").absolute()

    @event.listens_for(engine, "do_connect")
    def _connect(
        dialect: Dialect, record: ConnectionPoolEntry, arguments: list[str], _: object
    ) -> None:
        # Mode `rw` creates no empty file, which would hide that the file was deleted.
        arguments[:] = [f"{file.as_uri()}?mode=rw"]

    @event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()

    @event.listens_for(engine, "begin")
    def _begin(connection: sqlalchemy.Connection) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _postgresql(url: sqlalchemy.URL) -> Engine:
    # Imported late: most services have no PostgreSQL.
    from service.shared.database import postgresql

    return postgresql.create_engine(url)
