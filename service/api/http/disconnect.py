"""Frees the work of clients that hang up."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")

# Most work is done before, and then costs no watching.
_SECONDS_UNWATCHED = 0.05


async def unless_disconnected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Waits for work, and cancels it if the client of a request hangs up.

    Args:
        request: The request; its body has been read.
        work: The work.

    Raises:
        ClientDisconnect: If the client hung up.
    """
    task = asyncio.create_task(work)
    watching: asyncio.Task[None] | None = None
    try:
        await asyncio.wait([task], timeout=_SECONDS_UNWATCHED)
        if not task.done():
            watching = asyncio.create_task(_wait_until_disconnected(request))
            await asyncio.wait([task, watching], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        if watching is not None:
            watching.cancel()


async def _wait_until_disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
