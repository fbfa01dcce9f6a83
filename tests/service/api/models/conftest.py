import shutil
import time

import pytest

from service.shared.settings import Settings
from tests.service.serving import serving


@pytest.fixture
def database(queue):
    return queue.database


@pytest.fixture(scope="package")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="package")
def client(models):
    """A service of these tests' own, whose models they may move and delete."""
    settings = Settings(models=models, job_slots=0, poll_seconds=0.1)
    with serving(settings) as client:
        yield client


@pytest.fixture
def publish(models, saved_models):
    """Puts a version of a model in its place, as a user who copies it there."""

    def publish(name, number):
        staging = models / ".staging" / f"{name}.{number}"
        shutil.copytree(saved_models / "diabetes" / "1", staging)
        (models / name).mkdir(exist_ok=True)
        staging.rename(models / name / str(number))

    return publish


def wait_until_latest(client, name, number):
    """Waits until the models' process has come to know a version, and loaded it."""
    while (
        client.get(f"/v1/models/{name}").json()["labels"].get("latest") != f"{number}"
    ):
        time.sleep(0.02)
