import contextlib
import os
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from tests.ports import accepts
from tfbbb.cli.errors import CommandError
from tfbbb.cli.running_service import running_service

# A service that ignores SIGTERM.
STUBBORN = """
import http.server, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Ready)
print(f"http://127.0.0.1:{server.server_port}/ serves", flush=True)
server.serve_forever()
"""


def test_a_service_that_fails_to_start_reports_the_reason(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CommandError, match="is a file; name the models directory"),
        running_service(tmp_path / "file"),
    ):
        pytest.fail("a file was served")


def test_a_service_that_ignores_sigterm_is_killed(tmp_path, monkeypatch):
    started = []
    popen = subprocess.Popen
    with contextlib.ExitStack() as others:

        def stubborn(command, **arguments):
            port = int(command[command.index("--port") + 1])
            # Another program would take a port that was chosen before the service.
            if port:
                other = socket.create_server(("127.0.0.1", port))
                others.enter_context(other)
            command = [sys.executable, "-c", STUBBORN, str(port)]
            started.append(popen(command, **arguments))
            return started[0]

        monkeypatch.setattr("subprocess.Popen", stubborn)
        monkeypatch.setattr("tfbbb.cli.running_service._SECONDS_TO_STOP", 0.2)
        with running_service(tmp_path) as service:
            assert httpx.get(service.url, timeout=60).status_code == 200
    assert started[0].returncode == -signal.SIGKILL


def test_sigterm_ends_the_service_with_the_program(tmp_path):
    program = f"""
import time
from pathlib import Path
from tfbbb.cli.running_service import running_service
with running_service(Path({str(tmp_path)!r})) as service:
    print(service.url, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        # Nothing of this needs TensorFlow.
        env=os.environ | {"TFBBB_JOB_SLOTS": "0"},
    ) as process:
        url = process.stdout.readline().strip()
        port = httpx.URL(url).port
        assert accepts(port)
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
    assert not accepts(port)
