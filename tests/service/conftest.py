import shutil

import pytest
from sqlalchemy import make_url

from service.shared.database import Base, Database, create_tables
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.postgresql import emptied_database, postgresql_server
from tests.service.queued import leased, submitted
from tests.service.replicas.relay import Relay
from tests.service.serving import serving
from tests.service.stores import s3_server
from tests.trained import copy_of_exports


@pytest.fixture(scope="session")
def exported_models(tmp_path_factory):
    """The exports of `tests.exported_models`, which a process with TensorFlow makes."""
    return copy_of_exports(tmp_path_factory.mktemp("exported"))


@pytest.fixture(scope="session")
def saved_models(exported_models):
    """A registry with a model of each kind, one of them in two versions."""
    return exported_models / "saved_models"


@pytest.fixture(scope="session")
def client(saved_models):
    """Shared by the tests that only ask."""
    settings = Settings(
        models=saved_models,
        max_work=100_000,
        max_body_bytes=100_000,
        # The models stay as they are; each look at them takes time from other tests.
        poll_seconds=3600.0,
    )
    with serving(settings) as client:
        yield client


@pytest.fixture
def registry_root(tmp_path, saved_models):
    """A registry of its own, with the two versions of one model."""
    root = tmp_path / "saved_models"
    shutil.copytree(saved_models / "diabetes", root / "diabetes")
    return root


@pytest.fixture
def database(tmp_path):
    """A database with empty tables."""
    (tmp_path / "tfbbb.sqlite3").touch()
    database = Database(f"sqlite:///{tmp_path}/tfbbb.sqlite3")
    Base.metadata.create_all(database.engine)
    yield database
    database.close()


@pytest.fixture(scope="session")
def postgresql():
    with postgresql_server() as url:
        yield url


@pytest.fixture(scope="session")
def s3():
    with s3_server() as server:
        yield server


def pytest_generate_tests(metafunc):
    """Runs the tests of a module with `EACH_DATABASE` on each kind of database."""
    markers = metafunc.definition.iter_markers("parametrize")
    chosen = any("database_url" in marker.args[0] for marker in markers)
    if (
        getattr(metafunc.module, "EACH_DATABASE", False)
        and "database_url" in metafunc.fixturenames
        and not chosen
    ):
        kinds = ["sqlite", "postgresql"]
        metafunc.parametrize("database_url", kinds, indirect=True)


@pytest.fixture
def database_url(request, tmp_path):
    """An empty database."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return f"sqlite:///{tmp_path}/tfbbb.sqlite3"
    return emptied_database(request.getfixturevalue("postgresql"))


@pytest.fixture
def settings(database_url, tmp_path):
    return Settings(
        data_dir=tmp_path / "data",
        models=tmp_path / "models",
        database_url=database_url,
        lease_seconds=5.0,
        job_slots=2,
    )


@pytest.fixture
def queue(settings):
    database = Database(settings.effective_database_url)
    create_tables(database)
    yield Queue(database, settings)
    database.close()


@pytest.fixture
def lease(queue):
    """The right to run the only job."""
    submitted(queue)
    return leased(queue)


@pytest.fixture(scope="module")
def relay(postgresql):
    """A way to PostgreSQL that can misbehave."""
    port = make_url(postgresql).port
    with Relay(port) as relay:
        yield relay
