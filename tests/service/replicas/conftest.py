from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from service.shared.database import Database
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.postgresql import new_database
from tests.service.replicas.relay import Relay
from tests.service.running import Replica, means_of_two_versions
from tests.service.stores import S3


@pytest.fixture(scope="module")
def shared_url(postgresql: str) -> str:
    """The URL of an empty database."""
    return new_database(postgresql)


@pytest.fixture(scope="module")
def relay(postgresql: str) -> Iterator[Relay]:
    """The way of the second replica to the database."""
    port = make_url(postgresql).port
    assert port is not None
    with Relay(port) as relay:
        yield relay


@pytest.fixture(scope="module")
def means(
    replicas: list[Replica], elsewhere: Queue, saved_models: Path
) -> dict[int, float]:
    return means_of_two_versions(replicas, elsewhere, saved_models)


@pytest.fixture(scope="module")
def store(s3: S3) -> str:
    return s3.new_store()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replicas")


@pytest.fixture(scope="module")
def elsewhere(shared_url: str, store: str, root: Path) -> Iterator[Queue]:
    """The queue on another machine, which publishes."""
    settings = Settings(
        data_dir=root / "elsewhere",
        store=store,
        database_url=shared_url,
        lease_seconds=600.0,
    )
    database = Database(settings.effective_database_url)
    yield Queue(database, settings)
    database.close()
