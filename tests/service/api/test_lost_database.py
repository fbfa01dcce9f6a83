"""What goes on while the database is lost: keys and labels as they were last."""

import asyncio
import itertools
from contextlib import contextmanager

import pytest
from sqlalchemy.exc import OperationalError

from service.api import last_known
from service.api.keys.credential import Scope
from service.api.keys.keyring import Keyring
from service.api.keys.repository import create_key, revoke_key
from service.api.labels.repository import LabelRoutes, delete, move
from service.shared.errors import Unauthenticated, UnknownLabel
from tests.service.recorded import database_with_versions
from tests.waiting import set_clock

_numbers = itertools.count()


@pytest.fixture
def database(tmp_path):
    url = f"sqlite:///{tmp_path}/tfbbb.sqlite3"
    with database_with_versions(url, "houses", 1, 2) as database:
        yield database


@pytest.fixture
def lose(database, monkeypatch):
    """Loses the database until a block ends."""

    @contextmanager
    def lost():
        def fail():
            raise OperationalError("select 1", {}, Exception("refused"))

        with monkeypatch.context() as patch:
            patch.setattr(database, "reading", fail)
            yield

    return lost


@pytest.fixture
def clock(monkeypatch):
    """The time that keys and labels see, which only a test changes."""
    now = [1000.0]
    # A database that answers has all the time that it takes here.
    monkeypatch.setattr(last_known, "_PATIENCE_SECONDS", 60.0)
    set_clock(monkeypatch, last_known, monotonic=lambda: now[0])
    return now


def make_key(database):
    """Makes a key; returns what a client sends, and the id."""
    key, text = create_key(database, f"robot {next(_numbers)}", [Scope.PREDICT])
    return text, key.id


def test_known_key_is_accepted_for_a_minute(database, lose, clock):
    keyring = Keyring(database)
    known, _ = make_key(database)
    unknown, _ = make_key(database)

    async def check():
        caller = await keyring.find(known)
        with lose():
            with pytest.raises(OperationalError):
                await keyring.find(unknown)
            clock[0] += 59
            for _ in range(3):
                assert await keyring.find(known) == caller
            with pytest.raises(OperationalError):
                await keyring.find(f"{known}0")
            clock[0] += 10
            with pytest.raises(OperationalError):
                await keyring.find(known)

    asyncio.run(check())


def test_revoked_key_is_refused_within_five_seconds(database, lose, clock):
    keyring = Keyring(database)
    text, key_id = make_key(database)

    async def check():
        caller = await keyring.find(text)
        revoke_key(database, key_id)
        assert await keyring.find(text) == caller
        clock[0] += 5
        with pytest.raises(Unauthenticated, match="revoked"):
            await keyring.find(text)
        with lose(), pytest.raises(OperationalError):
            await keyring.find(text)

    asyncio.run(check())


def test_label_answers_as_before(database, lose, clock):
    routes = LabelRoutes(database)

    async def check():
        move(database, "houses", "live", 1)
        assert await routes.find("houses", "live") == 1
        move(database, "houses", "live", 2)
        with lose():
            assert await routes.find("houses", "live") == 1
            with pytest.raises(OperationalError):
                await routes.find("houses", "other")
            assert await routes.find("houses", "latest") is None
        # The database is asked again after some seconds, not at each request.
        assert await routes.find("houses", "live") == 1
        clock[0] += 5
        assert await routes.find("houses", "live") == 2
        delete(database, "houses", "live")
        with pytest.raises(UnknownLabel):
            await routes.find("houses", "live")
        with lose(), pytest.raises(OperationalError):
            await routes.find("houses", "live")

    asyncio.run(check())
