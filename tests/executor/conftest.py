import pytest

from tests.executor.tasks import trainings
from tfbbb.executor import LocalExecutor


@pytest.fixture(scope="session")
def networks():
    """The weights that one local process trains."""
    return LocalExecutor().run(trainings())
