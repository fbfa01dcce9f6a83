"""The service as operators run it: one process, its signals, its start-up."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from tests.ports import accepts, free_port
from tests.service.serving import ADMIN_KEY, AS_ADMIN, REAL, ask, wait_until_ready

BODY = b'{"instances": [[1, 2, 3]]}'


@contextmanager
def process(
    real_models: Path, data_dir: Path
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    port = free_port()
    command = [
        *(sys.executable, "-m", "uvicorn", "--factory", "service.app:create_app"),
        *("--port", str(port), "--log-level", "warning"),
    ]
    environment = os.environ | {
        "TFBBB_MODELS": str(real_models),
        "TFBBB_DATA_DIR": str(data_dir),
        "TFBBB_ADMIN_KEY": ADMIN_KEY,
        "TFBBB_MODEL_PROCESSES": "1",
    }
    running = subprocess.Popen(command, env=environment)
    try:
        while not accepts(port):
            assert running.poll() is None
            time.sleep(0.05)
        yield running, port
    finally:
        running.kill()
        running.wait()


def test_process_serves_and_finishes_its_requests_before_it_ends(
    real_models: Path, tmp_path: Path
) -> None:
    with process(real_models, tmp_path) as (running, port):
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=url, timeout=60, headers=AS_ADMIN) as client:
            # TensorFlow takes seconds to import: the first answers come before.
            assert client.get("/health/live").json() == {"status": "live"}
            response = client.get("/health/ready")
            assert response.status_code == 503
            assert "being loaded" in response.json()["error"]
            wait_until_ready(client)
            assert ask(client, "diabetes", BODY).status_code == 200
            children = psutil.Process(running.pid).children()
            (models,) = (child for child in children if REAL in child.cmdline())
            models.kill()
            # Another process takes its place.
            while ask(client, "diabetes", BODY).status_code != 200:
                time.sleep(0.1)

        with socket.create_connection(("127.0.0.1", port)) as connection:
            head = (
                "POST /v1/models/diabetes:predict HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {ADMIN_KEY}\r\n"
                f"Content-Length: {len(BODY)}\r\n\r\n"
            )
            connection.sendall(head.encode() + BODY[:10])
            # Whatever the process read of it, it has read it when it answers
            # something that was sent later.
            httpx.get(f"http://127.0.0.1:{port}/health/live")
            running.send_signal(signal.SIGTERM)
            while accepts(port):
                time.sleep(0.05)
            connection.sendall(BODY[10:])
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert b'"predictions"' in answer
        # In good order, uvicorn lets the signal do what it does by default.
        assert running.wait() == -signal.SIGTERM


def test_importing_the_service_imports_nothing_that_keeps_it_from_answering() -> None:
    slow = {"tensorflow", "keras", "numpy", "pyarrow", "alembic"}
    program = f"import sys, service.app; print({slow} & {{*sys.modules}} or '')"
    imported = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert imported == "\n"


def test_a_model_process_imports_nothing_large_that_it_does_not_need() -> None:
    large = {"tensorflow", "keras", "pandas", "scipy", "matplotlib"}
    worker = "service.model_process.worker"
    program = f"import sys, {worker}; print({large} & {{*sys.modules}} or '')"
    imported = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert imported == "\n"
