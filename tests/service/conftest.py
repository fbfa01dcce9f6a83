import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.settings import Settings
from tests import exported_models
from tests.service.serving import serving


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with a model of each kind, one of them in two versions."""
    root = tmp_path_factory.mktemp("saved_models")
    exported_models.write_regression(root / "diabetes" / "1", bias=-1000.0)
    exported_models.write_regression(root / "diabetes" / "2")
    exported_models.write_columns(root / "patients" / "1")
    exported_models.write_classification(root / "iris" / "7")
    return root


@pytest.fixture(scope="session")
def client(saved_models: Path) -> Iterator[httpx.Client]:
    """Shared by the tests that only ask."""
    settings = Settings(
        models=saved_models, max_rows_times_samples=100_000, max_body_bytes=100_000
    )
    with serving(settings) as client:
        yield client


@pytest.fixture
def registry_root(tmp_path: Path, saved_models: Path) -> Path:
    """A registry of its own, with the two versions of one model."""
    root = tmp_path / "saved_models"
    shutil.copytree(saved_models / "diabetes", root / "diabetes")
    return root
