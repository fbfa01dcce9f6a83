"""One model process, as the API sees it."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from service.api.http.request_log import request_id
from service.api.models.connection import Connection
from service.api.supervision import SupervisedProcess
from service.shared.errors import ServiceError
from service.shared.frames import Frame
from service.shared.model_messages import HostReport

# The share of the newest report in the load of a model.
_GAIN = 0.3


class ModelHost:
    """A model process (`service.model_process`) with the connection to it.

    Attributes:
        num_waiting: Requests that wait for their answers.
        settled: The models that the process was told to keep and has loaded, or found
            broken.
        loads: The share of the time that the process computes each model.
        resident_bytes: Resident memory.
        is_idle: Whether it answers no prediction, whichever API process asked for it.
    """

    def __init__(self, socket: Path, process: SupervisedProcess | None = None) -> None:
        self._socket = socket
        self._process = process
        self.num_waiting = 0
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._forget()

    def _forget(self) -> None:
        """Starts anew with a process of which nothing is known."""
        self.settled: frozenset[str] = frozenset()
        self.loads: dict[str, float] = {}
        self.resident_bytes = 0
        self.is_idle = True
        self._is_starting = True
        self._computed: dict[str, float] = {}
        self._reported_at = time.monotonic()

    @property
    def is_connected(self) -> bool:
        """Whether the process runs, as far as its connection tells."""
        return self._connection is not None and self._connection.is_open

    @property
    def is_ready(self) -> bool:
        """Whether the process loads a model as soon as it is asked."""
        return self.is_connected and not self._is_starting

    def load(self, name: str) -> float:
        """Returns the share of the time that the process computes a model."""
        return self.loads.get(name, 0.0)

    def observe(self, report: HostReport, threads: int) -> None:
        """Takes what the process reports of itself; it computes on some threads."""
        now = time.monotonic()
        seconds = threads * max(1e-3, now - self._reported_at)
        for name, computed in report.computed.items():
            share = (computed - self._computed.get(name, 0.0)) / seconds
            self.loads[name] = self.load(name) + _GAIN * (share - self.load(name))
        self.settled = frozenset(report.settled)
        self.resident_bytes = report.resident_bytes
        self.is_idle = report.is_idle
        self._is_starting = report.is_starting
        self._computed, self._reported_at = report.computed, now

    async def ask(
        self,
        operation: str,
        body: bytes | bytearray = b"",
        arguments: Mapping[str, object] | None = None,
    ) -> Frame:
        """Asks the process and waits for its response; if cancelled, frees the work."""
        header = {"operation": operation, "request_id": request_id()}
        request = Frame({**header, **(arguments or {})}, body)
        self.num_waiting += 1
        try:
            response = await (await self._connect()).ask(request)
        finally:
            self.num_waiting -= 1
        _raise_error(operation, response)
        return response

    def restart(self) -> None:
        """Kills the process, which is then started anew."""
        if self._process is not None:
            self._process.kill(self._process.pid)

    async def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            await self._connection.close()

    async def _connect(self) -> Connection:
        connection = self._connection
        if connection is not None and connection.is_open:
            return connection
        async with self._connecting:
            if self._connection is None or not self._connection.is_open:
                self._connection = await Connection.open(self._socket)
                self._forget()
            return self._connection


def _raise_error(operation: str, response: Frame) -> None:
    if "error" not in response.header:
        return
    error = ServiceError.from_message(response.header)
    if error is None:
        raise RuntimeError(f"The model process failed at {operation}; see its log")
    raise error
