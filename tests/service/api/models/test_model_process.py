"""What becomes of requests when the process that holds the models dies."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from tests.service.serving import STAND_IN, ask, wait_until_ready

BODY = {"instances": [[1, 2, 3]]}


def model_process(models: Path) -> psutil.Process:
    """The one that serves `models`; the service runs in a thread of this process."""
    (process,) = (
        child
        for child in psutil.Process().children()
        if STAND_IN in child.cmdline()
        and child.environ()["TFBBB_MODELS"] == str(models)
    )
    return process


@pytest.mark.usefixtures("ready_afterwards")
@pytest.mark.parametrize("fate", ["killed", "stopped"])
def test_requests_fail_when_the_process_is_gone_and_work_again_later(
    client: httpx.Client, publish: Callable[..., None], models: Path, fate: str
) -> None:
    publish(fate, 1)
    assert ask(client, fate, BODY).status_code == 200
    process = model_process(models)
    with ThreadPoolExecutor(1) as executor:
        process.suspend()
        answer = executor.submit(ask, client, fate, BODY)
        with pytest.raises(httpx.ReadTimeout):
            client.get("/v1/models", timeout=0.5)
        assert client.get("/health/live").status_code == 200
        assert not answer.done()
        if fate == "killed":
            process.kill()
        # The watchdog kills a process that is stopped.
        response = answer.result()
    assert response.status_code == 503
    assert "ended during the request" in response.json()["error"]
    # Until it is back, at once:
    assert ask(client, fate, BODY).status_code == 503
    assert client.get("/v1/models").status_code == 503
    assert client.get("/health/live").status_code == 200
    assert client.get("/docs").status_code == 200
    wait_until_ready(client)
    assert model_process(models).pid != process.pid
    assert ask(client, fate, BODY).status_code == 200
