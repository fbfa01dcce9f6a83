import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.shared.database import Base, Database, create_tables
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service import stand_in
from tests.service.postgresql import new_database, postgresql_server
from tests.service.serving import serving, wait_until_ready
from tests.service.stores import S3, s3_server


@pytest.fixture(scope="session", autouse=True)
def _stand_ins() -> None:
    stand_in.install()


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with a model of each kind, one of them in two versions.

    They are those of `stand_in`.
    """
    root = tmp_path_factory.mktemp("saved_models")
    stand_in.write_regression(root / "diabetes" / "1", bias=-1000.0)
    stand_in.write_regression(root / "diabetes" / "2")
    stand_in.write_columns(root / "patients" / "1")
    stand_in.write_classification(root / "iris" / "7")
    return root


@pytest.fixture(scope="session")
def real_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same models as SavedModels."""
    # Imports TensorFlow, which few of the tests need.
    from tests import exported_models

    root = tmp_path_factory.mktemp("real_models")
    exported_models.write_regression(root / "diabetes" / "1", bias=-1000.0)
    exported_models.write_regression(root / "diabetes" / "2")
    exported_models.write_columns(root / "patients" / "1")
    exported_models.write_classification(root / "iris" / "7")
    return root


@pytest.fixture(scope="session")
def client(saved_models: Path) -> Iterator[httpx.Client]:
    """Shared by the tests that only ask."""
    settings = Settings(models=saved_models, max_work=100_000, max_body_bytes=100_000)
    with serving(settings) as client:
        wait_until_ready(client)
        yield client


@pytest.fixture
def registry_root(tmp_path: Path, saved_models: Path) -> Path:
    """A registry of its own, with the two versions of one stand-in model."""
    root = tmp_path / "saved_models"
    shutil.copytree(saved_models / "diabetes", root / "diabetes")
    return root


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database with empty tables."""
    (tmp_path / "tfbbb.sqlite3").touch()
    database = Database(f"sqlite:///{tmp_path}/tfbbb.sqlite3")
    Base.metadata.create_all(database.engine)
    yield database
    database.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    with postgresql_server() as url:
        yield url


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    with s3_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/tfbbb.sqlite3"
    return new_database(request.getfixturevalue("postgresql"))


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path / "data",
        models=tmp_path / "models",
        database_url=database_url,
        lease_seconds=5.0,
        job_slots=2,
    )


@pytest.fixture
def queue(settings: Settings) -> Iterator[Queue]:
    database = Database(settings.effective_database_url)
    create_tables(database)
    yield Queue(database, settings)
    database.close()
