"""A PostgreSQL server behind a machine that accepts bytes and passes nothing on."""

from collections.abc import Iterator

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import OperationalError

from service.shared.database import Database, postgresql
from tests.service.replicas.relay import Relay

PATIENCE = 1


@pytest.fixture
def database(
    relay: Relay, postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    _set_patience(monkeypatch, PATIENCE)
    url = make_url(f"{postgresql}/postgres").set(port=relay.port)
    database = Database(url.render_as_string())
    yield database
    database.close()


def _set_patience(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    monkeypatch.setattr(postgresql, "ANSWER_SECONDS", seconds)
    monkeypatch.setattr(postgresql._Connection, "seconds_to_answer", seconds)


def read(database: Database) -> int | None:
    with database.reading() as session:
        value: int | None = session.scalar(text("select 1"))
        return value


def test_reader_gives_up_on_a_silent_server(relay: Relay, database: Database) -> None:
    assert read(database) == 1
    relay.silent = True
    with pytest.raises(OperationalError):
        read(database)
    relay.silent = False
    assert read(database) == 1


def test_writer_may_wait_longer_for_a_lock(database: Database) -> None:
    with database.writing() as session:
        session.execute(text(f"select pg_sleep({2 * PATIENCE})"))


def test_limit_of_a_writer_is_not_that_of_the_next_reader(database: Database) -> None:
    test_writer_may_wait_longer_for_a_lock(database)
    with pytest.raises(OperationalError), database.reading() as session:
        session.execute(text(f"select pg_sleep({4 * PATIENCE})"))
    assert read(database) == 1
