"""Labels that move and versions that appear while predictions come all the time."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.service.api.models.conftest import wait_until_latest
from tests.service.serving import ask

NAME = "storm"
# The mean of the row [1, 2, 3], of versions with an odd and with an even number.
MEANS = {1: 12.0 - 1000.0, 0: 12.0}
ROWS = 5
BODY = {"instances": [[1, 2, 3]] * ROWS}


def publish(models: Path, saved_models: Path, number: int) -> None:
    """Copies a version whose answers tell whether its number is odd or even."""
    source = saved_models / "diabetes" / ("1" if number % 2 else "2")
    staging = models / ".staging" / f"{NAME}.{number}"
    shutil.copytree(source, staging)
    (models / NAME).mkdir(exist_ok=True)
    staging.rename(models / NAME / str(number))


def assert_whole(response: httpx.Response) -> int:
    """Checks that all rows are of the version that the answer names."""
    # Where the cores are busy, the service refuses some at its door.
    if response.status_code == 503:
        assert "Retry-After" in response.headers
        return 0
    assert response.status_code == 200, response.text
    answer = response.json()
    number = int(answer["model_version"])
    means = [row["mean"][0] for row in answer["predictions"]]
    assert means == pytest.approx([MEANS[number % 2]] * ROWS, abs=1.0)
    return number


def test_every_answer_is_wholly_of_one_version(
    client: httpx.Client, models: Path, saved_models: Path
) -> None:
    newest = 2
    for number in (1, 2):
        publish(models, saved_models, number)
    wait_until_latest(client, NAME, newest)
    label = f"/v1/models/{NAME}/labels/champion"
    assert client.put(label, json={"version": 1}).status_code == 200
    done = threading.Event()

    def send(model: str) -> set[int]:
        seen = set()
        while not done.wait(0.01):
            seen.add(assert_whole(ask(client, model, BODY)))
        return seen

    with ThreadPoolExecutor(4) as executor:
        targets = [NAME, f"{NAME}/labels/champion"] * 2
        sending = [executor.submit(send, target) for target in targets]
        try:
            for move in range(6):
                version = newest - move % 2
                assert client.put(label, json={"version": version}).status_code == 200
                if move % 3 == 0:
                    newest += 1
                    publish(models, saved_models, newest)
                    wait_until_latest(client, NAME, newest)
        finally:
            done.set()
        seen = [future.result() for future in sending]
    # Both the label and `latest` have moved under load.
    assert all(len(versions - {0}) > 1 for versions in seen)
