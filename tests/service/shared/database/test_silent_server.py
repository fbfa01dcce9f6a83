"""A PostgreSQL server behind a machine that accepts bytes and passes nothing on."""

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import OperationalError

from service.shared.database import Database, postgresql

PATIENCE = 1


@pytest.fixture
def database(relay, postgresql, monkeypatch):
    _set_patience(monkeypatch, PATIENCE)
    url = make_url(f"{postgresql}/postgres").set(port=relay.port)
    database = Database(url.render_as_string())
    yield database
    database.close()


def _set_patience(monkeypatch, seconds):
    monkeypatch.setattr(postgresql, "ANSWER_SECONDS", seconds)
    monkeypatch.setattr(postgresql._Connection, "seconds_to_answer", seconds)


def read(database):
    with database.reading() as session:
        value = session.scalar(text("select 1"))
        return value


def test_reader_gives_up_on_a_silent_server(relay, database):
    assert read(database) == 1
    relay.silent = True
    with pytest.raises(OperationalError):
        read(database)
    relay.silent = False
    assert read(database) == 1


def test_writer_may_wait_longer_for_a_lock(database):
    with database.writing() as session:
        session.execute(text(f"select pg_sleep({2 * PATIENCE})"))


def test_limit_of_a_writer_is_not_that_of_the_next_reader(database):
    test_writer_may_wait_longer_for_a_lock(database)
    with pytest.raises(OperationalError), database.reading() as session:
        session.execute(text(f"select pg_sleep({4 * PATIENCE})"))
    assert read(database) == 1
