"""The connection to the model process, which carries many requests at a time."""

import asyncio
import itertools
from pathlib import Path
from typing import Self

from service.shared.errors import Unavailable
from service.shared.frames import Frame, receive_async


class Connection:
    """A connection to the model process."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self.is_open = True
        self._receiving = asyncio.create_task(self._receive())

    @classmethod
    async def open(cls, socket: Path) -> Self:
        """Connects to the process."""
        try:
            return cls(*await asyncio.open_unix_connection(socket))
        except OSError:
            raise Unavailable(
                "The models are being loaded: the model process is not running yet; "
                "retry in a few seconds."
            ) from None

    async def ask(self, request: Frame) -> Frame:
        """Sends a request and waits for its response; if cancelled, cancels it."""
        number = next(self._numbers)
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            try:
                await self._send(Frame({**request.header, "id": number}, request.body))
            except OSError:
                raise _process_ended() from None
            return await future
        except asyncio.CancelledError:
            if self.is_open:
                cancel = Frame({"operation": "cancel", "id": number})
                self._writer.write(cancel.head())
            raise
        finally:
            self._waiting.pop(number, None)
            if future.done() and not future.cancelled():
                # Where sending failed first, asyncio would log that nobody saw it.
                future.exception()

    async def close(self) -> None:
        """Closes the connection."""
        self._receiving.cancel()
        await asyncio.wait([self._receiving])

    async def _send(self, frame: Frame) -> None:
        if not self.is_open:
            raise _process_ended()
        self._writer.writelines((frame.head(), frame.body))
        await self._writer.drain()

    async def _receive(self) -> None:
        try:
            while True:
                response = await receive_async(self._reader)
                future = self._waiting.get(response.header["id"])
                if future is not None and not future.done():
                    future.set_result(response)
        except (OSError, asyncio.IncompleteReadError):
            pass  # The process has ended.
        finally:
            self.is_open = False
            self._writer.close()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(_process_ended())


def _process_ended() -> Unavailable:
    return Unavailable(
        "The model process ended during the request and is being restarted; retry in a "
        "few seconds."
    )
