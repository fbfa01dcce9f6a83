"""Connects to PostgreSQL, and bounds the time to wait for its answers."""

import time
from typing import Any

import psycopg
import sqlalchemy
from sqlalchemy import Dialect, Engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from tfbbb.base.types import JsonList, JsonObject

# Time in which the server must answer a statement that waits for no lock, and its
# network must confirm what was sent.
ANSWER_SECONDS = 10
_CONNECT_SECONDS = 5


class _Connection(psycopg.Connection[Any]):
    """A connection that is closed if the server does not answer in time.

    No limit of TCP ends a wait for a machine between that accepts bytes and keeps them.
    """

    seconds_to_answer: float | None = ANSWER_SECONDS

    def wait(
        self, gen: Any, interval: float = 0.1, timeout: float | None = None
    ) -> Any:
        """Waits for the answer to a statement."""
        limit = self.seconds_to_answer if timeout is None else timeout
        begin = time.monotonic()
        try:
            return super().wait(gen, interval, timeout=limit)
        except psycopg.OperationalError:
            # The server may still work on the statement: the connection is of no use.
            if limit is not None and time.monotonic() - begin >= limit:
                self.pgconn.finish()
            raise


def create_engine(url: sqlalchemy.URL) -> Engine:
    """Creates the engine of a PostgreSQL database."""
    # `pool_pre_ping` tests an idle connection before use, so that a restart of the
    # database fails no request.
    options = {
        "connect_timeout": _CONNECT_SECONDS,
        # A network that drops all packets is noticed within this time.
        "tcp_user_timeout": 1000 * ANSWER_SECONDS,
        "keepalives_idle": ANSWER_SECONDS,
        "keepalives_interval": 5,
        "keepalives_count": 2,
    }
    engine = sqlalchemy.create_engine(
        url,
        connect_args=options,
        pool_pre_ping=True,
        # While none of the connections is answered.
        pool_timeout=ANSWER_SECONDS,
    )

    @event.listens_for(engine, "do_connect")
    def _connect(
        dialect: Dialect,
        record: ConnectionPoolEntry,
        arguments: JsonList,
        options: JsonObject,
    ) -> _Connection:
        return _Connection.connect(*arguments, **options)

    @event.listens_for(engine, "checkin")
    def _reset(connection: _Connection | None, record: ConnectionPoolEntry) -> None:
        if connection is not None:
            connection.seconds_to_answer = ANSWER_SECONDS

    return engine


def allow_seconds(connection: sqlalchemy.Connection, seconds: float | None) -> None:
    """Lets each further statement of a connection wait for locks."""
    used = connection.connection.dbapi_connection
    assert isinstance(used, _Connection)
    used.seconds_to_answer = None if seconds is None else seconds + ANSWER_SECONDS
