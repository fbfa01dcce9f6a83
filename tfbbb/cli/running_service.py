"""The service as a child process, for the time of a command."""

import os
import re
import signal
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
from tfbbb.cli.serve import exit_on_sigterm

_URL = re.compile(r"http://127\.0\.0\.1:\d+/")
_SECONDS_TO_START = 120
_SECONDS_TO_STOP = 15


class RunningService(NamedTuple):
    """URL and admin key of a running service."""

    url: str
    key: str


@contextmanager
def running_service(models: Path) -> Iterator[RunningService]:
    """Runs `tfbbb serve` on a free port of this machine, which the service chooses.

    Yields the service's URL and key once all models are ready. At the end, also after
    an error or SIGTERM, sends the service SIGTERM, and SIGKILL if it does not stop.
    """
    from service.api.keys.credential import generate_credential

    key = generate_credential()
    with (
        tempfile.TemporaryFile() as log,
        tempfile.TemporaryDirectory(prefix="tfbbb-") as data,
    ):
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tfbbb", "serve"),
                *("--port", "0", "--models", str(models)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | {"TFBBB_ADMIN_KEY": key, "TFBBB_DATA_DIR": data},
        )
        try:
            with exit_on_sigterm(128 + signal.SIGTERM):
                yield RunningService(_wait_until_ready(process, log), key)
        finally:
            _stop(process)


def _wait_until_ready(process: subprocess.Popen, log: IO[bytes]) -> str:
    """Waits until all models are ready; returns the URL of the service."""
    deadline = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise CommandError(f"The service did not start: {_last_line(log)}")
        # The service writes its URL once it listens.
        found = _URL.search(_read(log))
        try:
            if (
                found is not None
                and httpx.get(f"{found[0]}health/ready", timeout=5).status_code == 200
            ):
                return found[0].rstrip("/")
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise CommandError(
        f"The service is not ready after {_SECONDS_TO_START} s: {_last_line(log)}"
    )


def _read(log: IO[bytes]) -> str:
    # Without `seek`, which would move the place at which the service writes.
    size = os.fstat(log.fileno()).st_size
    return os.pread(log.fileno(), size, 0).decode(errors="replace")


def _last_line(log: IO[bytes]) -> str:
    lines = _read(log).strip().splitlines()
    return lines[-1] if lines else "the service wrote no log."


def _stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(_SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
