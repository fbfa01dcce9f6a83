"""The service as operators run it: its signals, its start-up."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.ports import accepts
from tests.service.running import Replica, stopped_at_the_end
from tests.service.serving import ADMIN_KEY, ask

BODY = b'{"instances": [[1, 2, 3]]}'


def test_service_finishes_its_requests_before_it_ends(
    real_models: Path, tmp_path: Path
) -> None:
    variables = {"TFBBB_MODELS": str(real_models), "TFBBB_START_DISPATCHER": "0"}
    service = Replica(tmp_path / "service", **variables)
    with stopped_at_the_end(service):
        service.wait_until_ready()
        assert ask(service.client, "diabetes", BODY).status_code == 200
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            head = (
                "POST /v1/models/diabetes:predict HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {ADMIN_KEY}\r\n"
                f"Content-Length: {len(BODY)}\r\n\r\n"
            )
            connection.sendall(head.encode() + BODY[:10])
            # Whatever the process read of it, it has read it when it answers
            # something that was sent later.
            httpx.get(f"{service.url}/health/live")
            service.process.send_signal(signal.SIGTERM)
            while "Shutting down" not in service.log.read_text():
                time.sleep(0.05)
            connection.sendall(BODY[10:])
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert b'"predictions"' in answer
        assert service.process.wait() == 0
        assert not accepts(service.port)


def test_a_worker_imports_nothing_large_that_it_does_not_need() -> None:
    large = {"tensorflow", "keras", "pandas", "scipy", "matplotlib"}
    program = f"import sys, service.app; print({large} & {{*sys.modules}} or '')"
    imported = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert imported == "\n"
