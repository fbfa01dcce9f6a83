"""A PostgreSQL server behind a machine that accepts bytes and passes nothing on."""

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import OperationalError

from service.shared.database import Database
from service.shared.database import postgresql as connecting

PATIENCE = 2


@pytest.fixture
def database(relay, postgresql, monkeypatch):
    for name in ("ANSWER_SECONDS", "_CONNECT_SECONDS"):
        monkeypatch.setattr(connecting, name, PATIENCE)
    monkeypatch.setattr(connecting._Connection, "seconds_to_answer", PATIENCE)
    url = make_url(f"{postgresql}/postgres").set(port=relay.port)
    database = Database(url.render_as_string())
    yield database
    database.close()


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


def test_a_writer_may_wait_longer_for_a_lock_than_the_next_reader(database):
    with database.writing() as session:
        session.execute(text(f"select pg_sleep({1.5 * PATIENCE})"))
    with pytest.raises(OperationalError), database.reading() as session:
        session.execute(text(f"select pg_sleep({4 * PATIENCE})"))
    assert read(database) == 1
