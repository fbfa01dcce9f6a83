"""Work for a client that may hang up, without a server."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect, Request

from service.api.predictions import answering
from service.api.predictions.answering import unless_disconnected


class Client:
    """The client of a request; hangs up when it is told to."""

    def __init__(self):
        self.hangs_up = asyncio.Event()
        self.was_watched = asyncio.Event()
        self.request = Request({"type": "http"}, self._receive)

    async def _receive(self):
        self.was_watched.set()
        await self.hangs_up.wait()
        return {"type": "http.disconnect"}


@pytest.fixture(autouse=True)
def watched_at_once(monkeypatch):
    monkeypatch.setattr(answering, "_SECONDS_UNWATCHED", 0.0)


def test_result_is_that_of_the_work():
    async def ask():
        client = Client()

        async def work():
            await client.was_watched.wait()
            return 3

        assert await unless_disconnected(client.request, work()) == 3
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(ask())


def test_client_that_hangs_up_cancels_the_work():
    async def ask():
        client, cancelled = Client(), asyncio.Event()

        async def work():
            client.hangs_up.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        with pytest.raises(ClientDisconnect):
            await unless_disconnected(client.request, work())
        assert cancelled.is_set()
        await asyncio.sleep(0)  # The task itself goes on.

    asyncio.run(ask())
