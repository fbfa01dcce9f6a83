"""Two model processes under load: one ends or hangs, and the other answers."""

import contextlib
import re
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from service.shared.settings import Settings
from tests.service.serving import STAND_IN, ask, serving, wait_until_ready

NAMES = ("first", "second")
BODY = {"instances": [[1, 2, 3]]}


@pytest.fixture(scope="module")
def models(saved_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for name in NAMES:
        shutil.copytree(saved_models / "diabetes" / "2", root / name / "1")
    return root


@pytest.fixture(scope="module")
def client(models: Path) -> Iterator[httpx.Client]:
    settings = Settings(models=models, model_processes=2, poll_seconds=0.1)
    with serving(settings) as client:
        wait_until_ready(client)
        yield client


def processes(models: Path) -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # One that has just ended.
            if STAND_IN in child.cmdline():
                found.append(child)
    return [p for p in found if p.environ()["TFBBB_MODELS"] == str(models)]


def loaded_versions(client: httpx.Client) -> dict[str, str]:
    """Returns the process of each model that is loaded, from the metrics."""
    lines = client.get("/metrics").text.splitlines()
    found = [line for line in lines if line.startswith("tfbbb_model_versions{")]
    labels = [dict(re.findall(r'(\w+)="(.*?)"', line)) for line in found]
    return {
        each["model"]: each["model_process"]
        for each in labels
        if each["state"] == "AVAILABLE"
    }


def test_other_process_answers_when_one_is_gone(
    client: httpx.Client, models: Path
) -> None:
    while len(set(loaded_versions(client).values())) < len(NAMES):
        time.sleep(0.1)
    done = threading.Event()
    answers: dict[str, list[httpx.Response]] = {name: [] for name in NAMES}

    def send(name: str) -> None:
        while not done.wait(0.02):
            answers[name].append(ask(client, name, BODY))

    with ThreadPoolExecutor(len(NAMES)) as executor:
        sending = [executor.submit(send, name) for name in NAMES]
        try:
            gone = processes(models)[0]
            gone.kill()
            gone.wait(60)
            counts = {name: len(answers[name]) for name in NAMES}
            while any(len(answers[name]) < counts[name] + 10 for name in NAMES):
                assert not any(future.done() for future in sending)
                time.sleep(0.1)
        finally:
            done.set()
        for future in sending:
            future.result()
    lost = {
        name: sum("ended during the request" in answer.text for answer in found)
        for name, found in answers.items()
    }
    # Each client has one request at a time, and loses no other: a busy model may have a
    # home in both processes.
    assert max(lost.values()) <= 1
    for found in answers.values():
        # Where the cores are busy, the service refuses some at its door.
        assert {answer.status_code for answer in found} <= {200, 503}
        assert 200 in {answer.status_code for answer in found[-10:]}


def test_every_model_is_listed_whatever_its_home(client: httpx.Client) -> None:
    wait_until_ready(client)
    listed = client.get("/v1/models").json()["models"]
    assert [model["name"] for model in listed] == list(NAMES)
    states = [model["versions"][0]["state"] for model in listed]
    assert states == ["AVAILABLE", "AVAILABLE"]
