from collections.abc import Iterator
from pathlib import Path

import pytest

from service.shared.database import Database
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.postgresql import new_database
from tests.service.stores import S3


@pytest.fixture(scope="module")
def shared_url(postgresql: str) -> str:
    """The URL of an empty database."""
    return new_database(postgresql)


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
