import contextlib
import errno
import itertools
import os
import shutil
import sqlite3
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from service.api.http.errors import outage
from service.app import create_app
from service.shared.database import Database, report_outage
from service.shared.errors import Unavailable
from service.shared.settings import Settings
from tests.service.postgresql import PostgreSQL
from tests.service.recorded import add_versions
from tests.service.serving import (
    listening,
    refusal,
    settings_of_a_test,
    wait_until_ready,
)
from tests.small_disk import small_disk
from tests.waiting import wait_until

_numbers = itertools.count()
# A part may also have no answer in time, on a machine that does other things too.
LOST = (
    "database: The database does not answer. Loaded models go on predicting by the "
    "keys and labels known so far; nothing new is accepted."
)


def create_key(client):
    body = {"name": f"{next(_numbers):0200}", "scopes": ["predict"]}
    return client.post("/v1/keys", json=body)


@pytest.fixture
def settings(tmp_path):
    return settings_of_a_test(Settings(models=tmp_path, job_slots=0), tmp_path)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The settings of the service of `client`."""
    root = tmp_path_factory.mktemp("outages")
    return settings_of_a_test(Settings(models=root, job_slots=0), root)


@pytest.fixture(scope="module")
def client(here):
    """A service on SQLite, which can fail to write."""
    app = create_app(here)

    @app.get("/write/{number}")
    def write(number: int) -> None:
        raise OSError(number, os.strerror(number))

    with listening(app, "critical") as client:
        yield client


def test_lost_database_costs_requests_but_not_the_service(settings, monkeypatch):
    # Every request asks for its key anew.
    monkeypatch.setattr("service.api.keys.keyring._KNOWN_SECONDS", 0.0)
    with tempfile.TemporaryDirectory() as directory:
        server = PostgreSQL(Path(directory))
        url = {"database_url": f"{server.url}/postgres"}
        with pytest.raises(OperationalError, match="refused"):
            Database(url["database_url"]).wait(0.1)
        # Both may be started at once.
        starting = threading.Timer(1.0, server.start)
        starting.start()
        try:
            with listening(create_app(settings.model_copy(update=url))) as client:
                wait_until_ready(client)
                assert create_key(client).status_code == 201
                server.stop()
                for _ in range(3):
                    response = create_key(client)
                    assert response.status_code == 503
                    assert response.headers["Retry-After"]
                    assert "database does not answer" in response.json()["error"]
                wait_until(lambda: LOST in client.get("/health/ready").text)
                assert client.get("/health/live").status_code == 200
                server.start()
                wait_until_ready(client)
                assert create_key(client).status_code == 201
                take_no_writes(server.url)
                response = create_key(client)
                assert "the database is read-only" in refusal(response, 503)
        finally:
            starting.join()
            server.stop()


def take_no_writes(url):
    """Makes the server one of those that others are to take over from."""
    with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
        connection.execute("alter role tfbbb set default_transaction_read_only = on")
        others = "from pg_stat_activity where backend_type = 'client backend'"
        connection.execute(
            f"select pg_terminate_backend(pid) {others} and pid != pg_backend_pid()"
        )


def test_empty_directory_of_recorded_versions_is_not_ready(client, here):
    wait_until_ready(client)
    database = Database(here.effective_database_url)
    add_versions(database, "wine", 1, 2)
    database.close()
    lost = "has none of the 2 recorded versions, such as version 2 of 'wine'"
    wait_until(lambda: lost in client.get("/health/ready").text)
    (here.models / "wine" / "2").mkdir(parents=True)
    wait_until_ready(client)


def test_full_disk_leaves_room_for_deletions(settings):
    with small_disk(settings.data_dir, 24 * 2**20):
        app = create_app(settings.model_copy(update={"min_free_bytes": 0}))
        with listening(app, "critical") as client:
            table = client.post("/v1/datasets", content=b"a,b\n1,2\n").json()
            with (
                (settings.data_dir / "filler").open("wb", buffering=0) as filler,
                contextlib.suppress(OSError),
            ):
                while filler.write(bytes(4096)):
                    pass
            refused = [create_key(client) for _ in range(30)][-1]
            assert "or delete datasets and jobs" in refusal(refused, 507)
            path = f"/v1/datasets/{table['id']}"
            assert client.delete(path).status_code == 204
            assert client.get(path).status_code == 404


def test_outage_names_no_host():
    fault = psycopg.OperationalError('connection to server at "10.0.0.5" failed')
    with (
        pytest.raises(Unavailable, match="The database does not answer; retry") as said,
        report_outage(),
    ):
        raise OperationalError("SELECT 1", None, fault)
    assert "10.0.0.5" not in str(said.value)


def test_a_lost_or_damaged_database_file_is_named(client, here):
    path = here.data_dir / "tfbbb.sqlite3"
    moved = path.rename(path.with_name("moved.sqlite3"))
    gone = "database: Its file is gone"
    wait_until(lambda: gone in client.get("/health/ready").text)
    moved.rename(path)
    wait_until_ready(client)
    malformed = sqlite3.DatabaseError("database disk image is malformed")
    answer = outage(OperationalError("", None, malformed))
    assert "must stop the service, restore a backup" in str(answer)


def test_start_on_a_new_database_keeps_the_old_tables(settings, caplog):
    with listening(create_app(settings)) as client:
        assert client.post("/v1/datasets", content=b"a,b\n1,2\n").status_code == 201
    (table,) = (settings.data_dir / "datasets").iterdir()
    for path in settings.data_dir.glob("tfbbb.sqlite3*"):
        path.unlink()
    with listening(create_app(settings)):
        assert table.exists()
    assert "kept 1 files" in caplog.text


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (errno.ENOSPC, 507, "disk of the service is full"),
        (errno.EDQUOT, 507, "disk of the service is full"),
        (errno.EROFS, 503, "cannot write: read-only file system"),
        (errno.EACCES, 503, "cannot write: permission denied"),
        (errno.ENOENT, 500, "The service failed"),
    ],
)
def test_failing_disk_is_distinguished_from_a_program_fault(
    client, number, status, message
):
    # The server closes a connection after a fault of the program.
    response = client.get(f"/write/{number}", headers={"Connection": "close"})
    assert message in refusal(response, status)


def test_a_disk_that_does_not_answer_holds_up_nothing_else(client, monkeypatch):
    asked, answer = threading.Event(), threading.Event()

    def disk_usage(path):
        asked.set()
        answer.wait(120)
        raise TimeoutError

    monkeypatch.setattr("service.api.health._SECONDS_TO_ANSWER", 0.5)
    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    with ThreadPoolExecutor() as others:
        try:
            ready = others.submit(client.get, "/health/ready")
            assert asked.wait(60)
            assert client.get("/health/live").status_code == 200
            assert "disk: No answer" in ready.result(60).json()["error"]
        finally:
            answer.set()
