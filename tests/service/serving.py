"""The service behind a real port, for tests that speak HTTP."""

import os
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import uvicorn
from pydantic import SecretStr

from service.api.http.protocol import JsonErrorProtocol
from service.app import create_app
from service.parent import processes

ADMIN_KEY = "tests.0123456789abcdef0123456789abcdef"
AS_ADMIN = {"Authorization": f"Bearer {ADMIN_KEY}"}


@contextmanager
def serving(settings):
    """Runs an API process in a thread until the block ends; yields a client of it.

    The client sends an admin key. Settings that name no data directory get one that is
    removed at the end; jobs run only where the settings ask for workers.
    """
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        chosen = settings_of_a_test(settings, Path(directory))
        client = stack.enter_context(listening(create_app(chosen)))
        stack.enter_context(training(chosen))
        yield client


def settings_of_a_test(settings, directory):
    """Adds an admin key and, unless they say otherwise, a directory and no jobs."""
    changes = {"admin_key": SecretStr(ADMIN_KEY)}
    if "job_slots" not in settings.model_fields_set:
        changes["job_slots"] = 0
    if "data_dir" not in settings.model_fields_set:
        changes["data_dir"] = directory
    return settings.model_copy(update=changes)


@contextmanager
def training(settings):
    """Runs what the parent starts beside the workers, until the block ends."""
    children = list(processes.workers(settings, os.environ | settings.environment()))
    for child in children:
        child.start()
    try:
        yield
    finally:
        for child in children:
            child.stop(60.0)


@contextmanager
def listening(app, log_level="error"):
    """Runs an app on a free port until the block ends; yields a client of it.

    The client sends an admin key. The models have been looked at once.
    """
    config = uvicorn.Config(app, port=0, log_level=log_level, http=JsonErrorProtocol)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        # Without certificates, which take time to load.
        client = httpx.Client(base_url=url, timeout=60, headers=AS_ADMIN, verify=False)
        with client:
            while "The models are being loaded" in client.get("/health/ready").text:
                time.sleep(0.01)
            yield client
    finally:
        server.should_exit = True
        thread.join()


def visiting(client, **options):
    """Returns another client of the same service, without a key."""
    url = client.base_url
    return httpx.Client(base_url=url, timeout=60, verify=False, **options)


def wait_until_ready(client):
    while client.get("/health/ready").status_code != 200:
        time.sleep(0.05)


def refusal(response, status):
    """Returns the error of a response, which has this status and the one shape."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body.keys() == {"error", "code", "field"}
    return body["error"]


def ask(client, model, body):
    """Asks for a prediction; text is sent as it is."""
    path = f"/v1/models/{model}:predict"
    if isinstance(body, str | bytes):
        headers = {"content-type": "application/json"}
        return client.post(path, content=body, headers=headers)
    return client.post(path, json=body)
