from collections.abc import Iterator
from pathlib import Path

import pytest

from service.database import Database, upgrade
from service.jobs.queue import Queue
from service.settings import Settings


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
    upgrade(database, settings.data_dir / "backups")
    yield Queue(database, settings)
    database.close()
