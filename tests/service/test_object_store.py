"""A service on one machine serves what another machine has put into S3."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.shared.database import Database, create_tables
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.running import publish_copy
from tests.service.serving import ask, serving, wait_until_ready
from tests.service.stores import S3

BODY = {"instances": [[1, 2, 3]]}


@pytest.fixture(scope="module")
def url(s3: S3) -> str:
    return s3.new_store()


@pytest.fixture(scope="module")
def trainer_machine(
    url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Queue]:
    """A machine that publishes versions, with a database that others reach."""
    data = tmp_path_factory.mktemp("trainer")
    settings = Settings(data_dir=data, store=url, lease_seconds=600.0)
    database = Database(settings.effective_database_url)
    create_tables(database)
    yield Queue(database, settings)
    database.close()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def client(
    machine: Path, url: str, trainer_machine: Queue, saved_models: Path
) -> Iterator[httpx.Client]:
    publish_copy(trainer_machine, saved_models / "diabetes" / "1", "diabetes")
    settings = Settings(
        data_dir=machine,
        store=url,
        database_url=trainer_machine.settings.effective_database_url,
        poll_seconds=0.2,
    )
    with serving(settings) as client:
        wait_until_ready(client)
        yield client


def test_new_version_becomes_latest(
    client: httpx.Client, trainer_machine: Queue, machine: Path, saved_models: Path
) -> None:
    before = ask(client, "diabetes", BODY).json()
    assert (machine / "models" / "diabetes" / "1" / "saved_model.pb").exists()
    number = publish_copy(trainer_machine, saved_models / "diabetes" / "2", "diabetes")
    while ask(client, "diabetes", BODY).json() == before:
        time.sleep(0.2)
    named = ask(client, f"diabetes/versions/{number}", BODY).json()
    assert ask(client, "diabetes", BODY).json() == named
    assert ask(client, "diabetes/versions/1", BODY).json() == before


def test_uploaded_table_is_read_on_another_machine(
    client: httpx.Client, trainer_machine: Queue, machine: Path, s3: S3, url: str
) -> None:
    made = client.post("/v1/datasets", content=b"a,b\n1,2\n3,4\n").json()
    name = f"{made['sha256']}.csv"
    assert trainer_machine.store.dataset(name).read_bytes() == b"a,b\n1,2\n3,4\n"
    # The copy of the service is not the only one.
    (machine / "datasets" / name).unlink()
    preview = client.get(f"/v1/datasets/{made['id']}/preview")
    assert preview.json()["rows"] == [[1, 2], [3, 4]]
    assert client.delete(f"/v1/datasets/{made['id']}").status_code == 204
    assert (
        name not in trainer_machine.store.dataset_names()
        or not (machine / "datasets" / name).exists()
    )


def test_deleted_version_leaves_the_store(
    client: httpx.Client, trainer_machine: Queue
) -> None:
    assert client.delete("/v1/models/diabetes/versions/1").status_code == 204
    assert trainer_machine.store.numbers("diabetes") == [2]
    assert ask(client, "diabetes/versions/1", BODY).status_code == 404


def test_lost_bucket_is_reported_and_predictions_continue(
    client: httpx.Client, s3: S3, url: str
) -> None:
    s3.remove_bucket(url)
    ready = client.get("/health/ready")
    assert ready.status_code == 503
    assert "store: The store does not answer." in ready.text
    assert ask(client, "diabetes", BODY).status_code == 200
    upload = client.post("/v1/datasets", content=b"a,b\n5,6\n")
    assert upload.status_code == 503
    assert "there is no such bucket" in upload.json()["error"]
