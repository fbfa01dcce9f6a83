from unittest import mock

import pytest

from service.shared import sandbox
from service.shared.settings import Settings
from tests.service.sandboxed import reading_here
from tests.service.serving import serving


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def datasets(data_dir, tmp_path_factory):
    """A service that takes tables in, with narrow limits."""
    settings = Settings(
        models=tmp_path_factory.mktemp("models"),
        data_dir=data_dir,
        job_slots=0,
        max_upload_bytes=4_000_000,
        max_upload_rows=100_000,
        inspection_seconds=20,
        inspection_memory_bytes=2**30,
    )
    with (
        mock.patch.object(sandbox, "MOST_COLUMNS", 1000),
        mock.patch.object(sandbox, "MOST_DECOMPRESSED_BYTES", 50_000_000),
        serving(settings) as client,
    ):
        yield client


@pytest.fixture
def sandbox_process():
    """Lets processes read the tables of a test, under the limits of its settings."""
    with mock.patch.object(sandbox, "MOST_DECOMPRESSED_BYTES", 64 * 2**30):
        yield


@pytest.fixture(autouse=True)
def inspections_here(request):
    """Reads tables in this process, unless a test asks for `sandbox_process`."""
    if "sandbox_process" in request.fixturenames:
        yield
    else:
        with reading_here():
            yield
