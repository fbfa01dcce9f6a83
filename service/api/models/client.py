"""Sends requests to the model process over its socket."""

import asyncio
from pathlib import Path
from typing import Any

from service.api.http.request_log import add_to_log, request_id
from service.shared.errors import ServiceError, Unavailable
from service.shared.frames import Frame, exchange
from service.shared.model_messages import ModelList, ModelStatus

# Enough for a core to find the next request waiting when it has finished one.
_PREDICTIONS_PER_THREAD = 2

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ModelsClient:
    """A client of the model process (`service.model_process`).

    Each connection carries one request at a time; idle connections are reused.

    Args:
        socket: Path of the socket of the process.
        threads: Number of predictions that the process computes at the same time.
    """

    def __init__(self, socket: Path, threads: int) -> None:
        self._socket = socket
        self._idle: list[Connection] = []
        # Further requests wait here in order, where waiting needs no thread.
        self._predicting = asyncio.Semaphore(_PREDICTIONS_PER_THREAD * threads)

    async def predict(
        self, name: str, version: int | None, body: bytes | bytearray
    ) -> bytes | bytearray:
        """Predicts with a version of a model.

        Args:
            name: Name of the model.
            version: The version; None for `latest`.
            body: The body of a `:predict` request.

        Returns:
            The body of the response.

        Raises:
            ServiceError: The error of the process, or `Unavailable` if it is not
                running.
        """
        async with self._predicting:
            frame = await self._ask("predict", body, name=name, version=version)
        add_to_log(model=name, **frame.header)
        return frame.body

    async def score(
        self, name: str, version: int | None, body: bytes | bytearray
    ) -> bytes | bytearray:
        """Scores feedback by the versions that it is about.

        Args:
            name: Name of the model.
            version: The version; None for `latest`, or for those that predicted.
            body: The body of a `/feedback` request.

        Returns:
            `ScoredRows` of `service.shared.model_messages` as JSON, a list.

        Raises:
            ServiceError: As for `predict`.
        """
        async with self._predicting:
            frame = await self._ask("score", body, name=name, version=version)
        add_to_log(model=name, **frame.header)
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

    def close(self) -> None:
        """Closes the idle connections."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def _ask(
        self, operation: str, body: bytes | bytearray = b"", **arguments: Any
    ) -> Frame:
        connection = await self._connect()
        try:
            header = {"operation": operation, "request_id": request_id()}
            request = Frame(header | arguments, body)
            response = await exchange(*connection, request)
        except (OSError, asyncio.IncompleteReadError):
            connection[1].close()
            raise Unavailable(
                "The model process ended during the request and is being restarted; "
                "retry in a few seconds."
            ) from None
        except BaseException:
            # The request was cancelled: its response must not reach another request.
            connection[1].close()
            raise
        self._idle.append(connection)
        _raise_error(operation, response)
        return response

    async def _connect(self) -> Connection:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        try:
            return await asyncio.open_unix_connection(self._socket)
        except OSError:
            raise Unavailable(
                "The models are being loaded: the model process is not running yet; "
                "retry in a few seconds."
            ) from None


def _raise_error(operation: str, response: Frame) -> None:
    if "error" not in response.header:
        return
    error = ServiceError.from_message(response.header)
    if error is None:
        raise RuntimeError(f"The model process failed at {operation}; see its log")
    raise error
