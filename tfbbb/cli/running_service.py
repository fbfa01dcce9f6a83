"""The service as a process of its own, for as long as it is needed."""

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

_SECONDS_TO_START = 120
_SECONDS_TO_STOP = 15


class RunningService(NamedTuple):
    """Where a service answers, and an admin key of it."""

    url: str
    key: str


@contextmanager
def running_service(models: Path) -> Iterator[RunningService]:
    """Runs `tfbbb serve` on a free port of this machine.

    Gives the service's URL and key once all models are ready. At the end, also after an
    error or SIGTERM, the service is asked to stop, and killed if it doesn't.

    Args:
        models: Directory of models.

    Raises:
        CommandError: The service doesn't start; quotes the end of its log.
    """
    from service.api.keys.credential import Credential

    port, key = _free_port(), Credential.generate().text
    with (
        tempfile.TemporaryFile() as log,
        tempfile.TemporaryDirectory(prefix="tfbbb-") as data,
    ):
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tfbbb.cli", "serve"),
                *("--port", str(port), "--models", str(models)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | {"TFBBB_ADMIN_KEY": key, "TFBBB_DATA_DIR": data},
        )
        try:
            with _sigterm_as_exit():
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
            raise CommandError(f"The service ended at its start: {_last_line(log)}")
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
    return lines[-1] if lines else "it wrote no log."


def _stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(_SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _sigterm_as_exit() -> Iterator[None]:
    """Lets SIGTERM end this process with its clean-up, which it skips by default."""

    def leave(number: int, frame: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
