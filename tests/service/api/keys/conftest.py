from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from service.api.keys.credential import Credential, Scope
from service.api.keys.repository import add_key
from service.shared.database import Database, create_tables
from service.shared.settings import Settings
from tests.service.serving import serving


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "models").mkdir()
    return Settings(models=tmp_path / "models", data_dir=tmp_path, job_slots=0)


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    database = Database(settings.effective_database_url)
    create_tables(database)
    yield database
    database.close()


@pytest.fixture
def client(settings: Settings, database: Database) -> Iterator[httpx.Client]:
    with serving(settings) as client:
        yield client


@pytest.fixture
def key_with(database: Database) -> Callable[..., dict[str, str]]:
    """Makes a key and gives the header that sends it."""

    def key_with(*scopes: Scope, **limits: float) -> dict[str, str]:
        credential = Credential.generate()
        with database.writing() as session:
            add_key(database, session, credential, "a test", scopes, **limits)
        return {"Authorization": f"Bearer {credential.text}"}

    return key_with
