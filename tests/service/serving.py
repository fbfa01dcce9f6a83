"""The service behind a real port, for tests that speak HTTP."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn

from service.app import create_app
from service.settings import Settings


@contextmanager
def serving(settings: Settings) -> Iterator[httpx.Client]:
    """Runs the service in a thread until the block ends; yields a client of it."""
    config = uvicorn.Config(create_app(settings), port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def wait_until_ready(client: httpx.Client) -> None:
    while client.get("/health/ready").status_code != 200:
        time.sleep(0.05)


def ask(client: httpx.Client, model: str, body: Any) -> httpx.Response:
    """Asks for a prediction; text is sent as it is."""
    path = f"/v1/models/{model}:predict"
    if isinstance(body, str | bytes):
        headers = {"content-type": "application/json"}
        return client.post(path, content=body, headers=headers)
    return client.post(path, json=body)
