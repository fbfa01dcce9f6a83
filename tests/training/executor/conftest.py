import pytest

from tests.training.executor.tasks import trainings
from tfbbb.training.executor import LocalExecutor


@pytest.fixture(scope="session")
def networks():
    """The weights that one local process trains."""
    return LocalExecutor().run(trainings())
