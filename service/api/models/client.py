"""Sends requests to the model process over its socket."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from service.api.http.request_log import add_to_log, request_id
from service.api.models.connection import Connection
from service.shared.errors import Overloaded, ServiceError
from service.shared.frames import Frame
from service.shared.model_messages import ModelList, ModelStatus
from service.shared.route import Route
from service.shared.settings import Settings


class ModelsClient:
    """A client of the model process (`service.model_process`).

    Args:
        socket: Path of the socket of the process.
        settings: The limits of what may wait.
    """

    def __init__(self, socket: Path, settings: Settings) -> None:
        self._socket = socket
        self._settings = settings
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._num_waiting = 0
        self._bytes_waiting = 0

    @contextmanager
    def admit(self, size: int) -> Iterator[None]:
        """Counts a prediction and the bytes of its body until the block ends.

        Raises:
            Overloaded: If too many are waiting.
        """
        settings = self._settings
        if self._num_waiting >= settings.max_waiting_requests:
            raise Overloaded(
                f"{self._num_waiting} predictions are waiting, the most that may "
                "(TFBBB_MAX_WAITING_REQUESTS); retry after the seconds of "
                "`Retry-After`."
            )
        # A body within the limit of bodies is taken if no other is waiting.
        if 0 < self._bytes_waiting > settings.max_waiting_bytes - size:
            raise Overloaded(
                f"Bodies of {self._bytes_waiting} bytes are waiting, and at most "
                f"{settings.max_waiting_bytes} may (TFBBB_MAX_WAITING_BYTES); retry "
                "after the seconds of `Retry-After`."
            )
        self._num_waiting += 1
        self._bytes_waiting += size
        try:
            yield
        finally:
            self._num_waiting -= 1
            self._bytes_waiting -= size

    async def predict(
        self,
        name: str,
        route: Route,
        body: bytes | bytearray,
        arrived: float,
        *,
        reads: str = "json",
        writes: str = "json",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> Frame:
        """Predicts with a version of a model; if cancelled, frees the work.

        Args:
            name: Name of the model.
            route: The versions that may answer.
            body: The body of the request.
            arrived: Time of `time.monotonic` at which the request came, from which
                its deadline counts.
            reads: Name of the codec that reads the body.
            writes: Name of the codec that writes the response.
            options: What the reader needs beside the body.

        Returns:
            The response, with `media_type` and `headers` in its header.

        Raises:
            ServiceError: The error of the process, or `Unavailable` if it is not
                running.
        """
        frame = await self._ask(
            "predict",
            body,
            name=name,
            arrived=arrived,
            reads=reads,
            writes=writes,
            options=dict(options),
            **asdict(route),
        )
        add_to_log(model=name, **frame.header["log"])
        return frame

    async def score(
        self, name: str, route: Route, body: bytes | bytearray
    ) -> bytes | bytearray:
        """Scores feedback by the versions that it is about.

        Args:
            name: Name of the model.
            route: The versions; `latest` also for those that predicted.
            body: The body of a `/feedback` request.

        Returns:
            `ScoredRows` of `service.shared.model_messages` as JSON, a list.

        Raises:
            ServiceError: As for `predict`.
        """
        frame = await self._ask("score", body, name=name, **asdict(route))
        add_to_log(model=name, **frame.header["log"])
        return frame.body

    async def models(self) -> ModelList:
        """Returns every model with the states of its versions."""
        return ModelList.model_validate_json((await self._ask("models")).body)

    async def model(self, name: str) -> ModelStatus:
        """Returns the states of all versions of a model."""
        frame = await self._ask("model", name=name)
        return ModelStatus.model_validate_json(frame.body)

    async def version(self, name: str, version: int | None) -> ModelStatus:
        """Returns the state of one version, by default `latest`."""
        frame = await self._ask("version", name=name, version=version)
        return ModelStatus.model_validate_json(frame.body)

    async def metadata(self, name: str, version: int | None) -> bytes | bytearray:
        """Returns signatures and manifest of a version, a `Metadata` as JSON."""
        return (await self._ask("metadata", name=name, version=version)).body

    async def load(self, name: str, version: int) -> str | None:
        """Loads and tries a version; returns the reason if it cannot predict."""
        problem: str | None = (
            await self._ask("load", name=name, version=version)
        ).header["problem"]
        return problem

    async def load_newest(self, name: str) -> None:
        """Loads the newest version of a model, which becomes `latest`.

        Raises:
            Unavailable: If the process still loads the models of its start, or no
                version can be loaded.
        """
        await self._ask("load_newest", name=name)

    async def rescan(self) -> None:
        """Rescans the models directory, and drops deleted versions."""
        await self._ask("rescan")

    async def check_ready(self) -> None:
        """Raises `Unavailable` until every model is loaded or known to be broken."""
        await self._ask("check_ready")

    async def metrics(self) -> bytes | bytearray:
        """Returns the metrics of the process, in the format of Prometheus."""
        return (await self._ask("metrics")).body

    async def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            await self._connection.close()

    async def _ask(
        self, operation: str, body: bytes | bytearray = b"", **arguments: Any
    ) -> Frame:
        connection = await self._connect()
        header = {"operation": operation, "request_id": request_id()}
        response = await connection.ask(Frame(header | arguments, body))
        _raise_error(operation, response)
        return response

    async def _connect(self) -> Connection:
        connection = self._connection
        if connection is not None and connection.is_open:
            return connection
        async with self._connecting:
            if self._connection is None or not self._connection.is_open:
                self._connection = await Connection.open(self._socket)
            return self._connection


def _raise_error(operation: str, response: Frame) -> None:
    if "error" not in response.header:
        return
    error = ServiceError.from_message(response.header)
    if error is None:
        raise RuntimeError(f"The model process failed at {operation}; see its log")
    raise error
