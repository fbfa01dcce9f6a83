"""Asks the model process over its socket."""

import asyncio
from pathlib import Path
from typing import Any

from service.shared.errors import ServiceError, Unavailable
from service.shared.frames import Frame, exchange
from service.shared.model_messages import ModelList, ModelStatus

# Enough that a core that has done its prediction finds the next one waiting.
_PREDICTIONS_PER_THREAD = 2

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ModelsClient:
    """The models, which live in a process of their own (`service.model_process`).

    A connection carries one question at a time; those that are idle are kept.

    Args:
        socket: Where the process listens.
        threads: How many predictions it computes at the same time.
    """

    def __init__(self, socket: Path, threads: int) -> None:
        self._socket = socket
        self._idle: list[Connection] = []
        # The others wait here, in order, where waiting costs no thread.
        self._predicting = asyncio.Semaphore(_PREDICTIONS_PER_THREAD * threads)

    async def predict(
        self, name: str, version: int | None, body: bytes | bytearray
    ) -> bytes | bytearray:
        """Asks a version of a model, by default the one in charge.

        Args:
            name: The model.
            version: The version.
            body: The body of a `:predict` request.

        Returns:
            The body of the answer.

        Raises:
            ServiceError: As the process says, or `Unavailable` if it is not up.
        """
        async with self._predicting:
            frame = await self._ask("predict", body, name=name, version=version)
        return frame.body

    async def models(self) -> ModelList:
        """Every model with the states of its versions."""
        return ModelList.model_validate_json((await self._ask("models")).body)

    async def model(self, name: str) -> ModelStatus:
        """The states of all versions of a model."""
        frame = await self._ask("model", name=name)
        return ModelStatus.model_validate_json(frame.body)

    async def version(self, name: str, version: int | None) -> ModelStatus:
        """The state of one version, by default the one in charge."""
        frame = await self._ask("version", name=name, version=version)
        return ModelStatus.model_validate_json(frame.body)

    async def metadata(self, name: str, version: int | None) -> bytes | bytearray:
        """Signatures and manifest of a version, a `Metadata` as JSON."""
        return (await self._ask("metadata", name=name, version=version)).body

    async def load(self, name: str, version: int) -> str | None:
        """Loads a version and tries it; returns the reason if it can't answer."""
        problem: str | None = (
            await self._ask("load", name=name, version=version)
        ).header["problem"]
        return problem

    async def load_newest(self, name: str) -> None:
        """Puts the newest version of a model in charge.

        Raises:
            Unavailable: If the process still loads what it found at its start, or no
                version can be loaded.
        """
        await self._ask("load_newest", name=name)

    async def rescan(self) -> None:
        """Scans the directory of models, so that deleted versions are dropped."""
        await self._ask("rescan")

    async def check_ready(self) -> None:
        """Raises `Unavailable` until every model is loaded or known to be broken."""
        await self._ask("check_ready")

    async def metrics(self) -> bytes | bytearray:
        """The figures of the process, in Prometheus' format."""
        return (await self._ask("metrics")).body

    def close(self) -> None:
        """Hangs up."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def _ask(
        self, operation: str, body: bytes | bytearray = b"", **arguments: Any
    ) -> Frame:
        connection = await self._connect()
        try:
            question = Frame({"operation": operation} | arguments, body)
            answer = await exchange(*connection, question)
        except (OSError, asyncio.IncompleteReadError):
            connection[1].close()
            raise Unavailable(
                "The process that holds the models ended while it answered; it is "
                "started anew: ask again in some seconds."
            ) from None
        except BaseException:
            # The question was given up: nobody may take its answer for another's.
            connection[1].close()
            raise
        self._idle.append(connection)
        _raise_error(operation, answer)
        return answer

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
                "The models are being loaded: the process that holds them is not up "
                "yet; ask again in some seconds."
            ) from None


def _raise_error(operation: str, answer: Frame) -> None:
    if "error" not in answer.header:
        return
    error = ServiceError.from_message(answer.header)
    if error is None:
        raise RuntimeError(f"The model process failed to {operation}; its log says why")
    raise error
