"""Frees the work of clients that hang up."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")

# Most work is done before, and then costs no watching.
_SECONDS_UNWATCHED = 0.05


async def unless_disconnected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Waits for work, and cancels it if the client of a request hangs up."""
    watching: asyncio.Task[None] | None = None
    working = asyncio.current_task()
    assert working is not None
    has_hung_up = False

    async def watch() -> None:
        nonlocal has_hung_up
        while (await request.receive())["type"] != "http.disconnect":
            pass
        has_hung_up = True
        working.cancel()

    def start_watching() -> None:
        nonlocal watching
        watching = asyncio.create_task(watch())

    # Most work ends before, and then costs a timer and no task.
    timer = asyncio.get_running_loop().call_later(_SECONDS_UNWATCHED, start_watching)
    try:
        return await work
    except asyncio.CancelledError:
        # Else the server cancels the request, which must go on.
        if has_hung_up and not working.uncancel():
            raise ClientDisconnect from None
        raise
    finally:
        timer.cancel()
        if watching is not None:
            watching.cancel()
