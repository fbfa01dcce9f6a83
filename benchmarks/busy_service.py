"""The service while it does other work."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pyarrow

from tfbbb.client import Client

_COLUMNS = 13
_TRAINED_ROWS = 20_000
_EPOCHS = 1000
_LARGE_BYTES = 30e6
# The least number of draws: the time is that of reading, not of the network.
LEAST_DRAWS = 2


@contextmanager
def training(port: int, key: str) -> Iterator[None]:
    """Trains a model by a job until the block ends; begins with the first epoch."""
    generator = np.random.default_rng(0)
    table = {
        f"x{n}": generator.normal(size=_TRAINED_ROWS).tolist() for n in range(_COLUMNS)
    }
    table["y"] = (np.array(table["x0"]) ** 2 + table["x1"]).tolist()
    with Client(f"http://127.0.0.1:{port}", key) as client:
        dataset = client.upload(pyarrow.table(table))
        job = client.train(dataset, "y", name="trained", training={"epochs": _EPOCHS})
        while not job.refresh().progress.get("epoch"):
            if job.state not in ("queued", "running"):
                raise RuntimeError(f"the job is {job.state}: {job.error}")
            time.sleep(0.2)
        try:
            yield
        finally:
            job.cancel()


@contextmanager
def large_requests(port: int, key: str, path: str) -> Iterator[None]:
    """Sends requests of 30 MB, one after the other, until the block ends."""
    row = [0.1 * place for place in range(_COLUMNS)]
    number = int(_LARGE_BYTES / (len(json.dumps(row)) + 2))
    body = json.dumps(
        {"instances": [row] * number, "parameters": {"num_samples": LEAST_DRAWS}}
    ).encode()
    ended = threading.Event()

    def send() -> None:
        post(port, key, path, body, {"Content-Type": "application/json"})

    def send_again() -> None:
        while not ended.is_set():
            send()

    send()  # Starts the processes that read large bodies.
    sending = threading.Thread(target=send_again)
    sending.start()
    try:
        yield
    finally:
        ended.set()
        sending.join()


def post(
    port: int,
    key: str,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
    connection: http.client.HTTPConnection | None = None,
) -> None:
    """Sends a request, which must be answered with 200."""
    used = connection or http.client.HTTPConnection("127.0.0.1", port)
    used.request("POST", path, body, {"Authorization": f"Bearer {key}", **headers})
    response = used.getresponse()
    answer = response.read()
    if response.status != 200:
        raise RuntimeError(f"{path} answers {response.status}: {answer[:300]!r}")
    if connection is None:
        used.close()
