import asyncio
from types import SimpleNamespace
from typing import Any

from starlette.types import Message

from service.api.http.body_limit import BodyLimit


def test_a_listener_that_sends_too_much_is_taken_for_gone() -> None:
    told: list[str] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"12345", "more_body": True}

    async def send(message: Message) -> None:
        pass

    async def stream() -> None:
        service = SimpleNamespace(settings=None)
        scope: dict[str, Any] = {"headers": [], "state": {"service": service}}
        counted, watched = BodyLimit(max_bytes=12).enforce(scope, receive, send)
        await watched({"type": "http.response.start", "status": 200})
        while told[-1:] != ["http.disconnect"]:
            told.append((await counted())["type"])

    asyncio.run(stream())
    assert told == ["http.request", "http.request", "http.disconnect"]
