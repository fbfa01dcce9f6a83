"""Service processes to be killed."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import httpx
import psutil

from service.shared.settings import Settings
from tests.ports import free_port
from tests.service.serving import ADMIN_KEY, AS_ADMIN

STAND_IN = ("tests.service.job_process.stand_in_service",)
REAL = ("uvicorn", "--factory", "service.app:create_app", "--log-level", "warning")

_MODULES = {
    "trainer": ("service.trainer", "tests.service.job_process.stand_in_trainer"),
    "dispatcher": (
        "service.job_process.dispatcher",
        "tests.service.job_process.stand_in_dispatcher",
    ),
    "models": ("service.model_process.worker",),
}


class Services:
    """Service processes on one database, started again when they were killed.

    Args:
        settings: Of all of them.
        count: How many.
        module: What to run, with its arguments but the port.
    """

    def __init__(self, settings: Settings, count: int, module: Sequence[str]) -> None:
        self._module = module
        self._environment = os.environ | settings.environment()
        self._environment["TFBBB_ADMIN_KEY"] = ADMIN_KEY
        self._environment["TFBBB_MODEL_PROCESSES"] = "1"
        self._ports = [free_port() for _ in range(count)]
        self.processes = [self._start(port) for port in self._ports]

    def _start(self, port: int) -> psutil.Popen:
        return psutil.Popen(
            [sys.executable, "-m", *self._module, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment,
        )

    def children(self, what: str | None = None) -> list[psutil.Process]:
        """The processes below the services: all, or those of one kind."""
        found = []
        for process in self.processes:
            with suppress(psutil.NoSuchProcess):
                for child in process.children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        line = child.cmdline()
                        if what is None or set(_MODULES[what]) & set(line):
                            found.append(child)
        return found

    def kill(self, what: str, chance: random.Random) -> None:
        """Kills a process of one kind, the `api`, or `all` there are."""
        victims: list[psutil.Process] = []
        if what == "all":
            victims = [*self.processes, *self.children()]
        elif what == "api":
            victims = [chance.choice(self.processes)]
        elif found := self.children(what):
            victims = [chance.choice(found)]
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        for place, process in enumerate(self.processes):
            if process in victims:
                process.wait()
                self.processes[place] = self._start(self._ports[place])

    def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Asks any of them, until there is an answer."""
        deadline = time.monotonic() + 60
        headers = AS_ADMIN | request.pop("headers", {})
        while True:
            port = random.choice(self._ports)
            try:
                url = f"http://127.0.0.1:{port}{path}"
                response = httpx.request(method, url, headers=headers, **request)
                if response.status_code < 500:
                    return response
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline, f"no answer to {method} {path}"
            time.sleep(0.1)

    def stop(self) -> None:
        """Stops them in good order; nothing of them is left."""
        below = self.children()
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(60)
        _, left = psutil.wait_procs(below, timeout=30)
        assert not left, "processes outlive their service"

    def start_again(self) -> None:
        """Starts them after `stop`."""
        self.processes = [self._start(port) for port in self._ports]

    def close(self) -> None:
        """Leaves nothing, whatever went wrong."""
        for process in [*self.children(), *self.processes]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
