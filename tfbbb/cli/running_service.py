"""The service as a child process, for the time of a command."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import httpx

from tfbbb.cli.errors import CommandError
from tfbbb.cli.termination import exit_on_sigterm

_SECONDS_TO_START = 120
_SECONDS_TO_STOP = 15


class RunningService(NamedTuple):
    """URL and admin key of a running service."""

    url: str
    key: str


@contextmanager
def running_service(models: Path) -> Iterator[RunningService]:
    """Runs `tfbbb serve` on a free port of this machine.

    Yields the service's URL and key once all models are ready. At the end, also after
    an error or SIGTERM, sends the service SIGTERM, and SIGKILL if it does not stop.

    Args:
        models: Directory of models.

    Raises:
        CommandError: The service does not start; the message quotes the last line of
            the service's log.
    """
    from service.api.keys.credential import Credential

    port, key = _free_port(), Credential.generate().text
    with (
        tempfile.TemporaryFile() as log,
        tempfile.TemporaryDirectory(prefix="tfbbb-") as data,
    ):
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tfbbb", "serve"),
                *("--port", str(port), "--models", str(models)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | {"TFBBB_ADMIN_KEY": key, "TFBBB_DATA_DIR": data},
        )
        try:
            with exit_on_sigterm(128 + signal.SIGTERM):
                url = f"http://127.0.0.1:{port}"
                _wait_until_ready(url, process, log)
                yield RunningService(url, key)
        finally:
            _stop(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_ready(url: str, process: subprocess.Popen, log: IO[bytes]) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise CommandError(f"The service did not start: {_last_line(log)}")
        try:
            if httpx.get(f"{url}/health/ready", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise CommandError(
        f"The service is not ready after {_SECONDS_TO_START} s: {_last_line(log)}"
    )


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "the service wrote no log."


def _stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(_SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
