import asyncio

from starlette.types import Message, Receive, Scope, Send

from service.http.body_limit import BodyLimit


def test_a_listener_that_sends_too_much_is_taken_for_gone() -> None:
    told: list[str] = []

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})
        while told[-1:] != ["http.disconnect"]:
            told.append((await receive())["type"])

    async def receive() -> Message:
        return {"type": "http.request", "body": b"12345", "more_body": True}

    async def send(message: Message) -> None:
        pass

    scope = {"type": "http", "path": "/v1/jobs/1/events", "headers": []}
    asyncio.run(BodyLimit(stream, max_bytes=12)(scope, receive, send))
    assert told == ["http.request", "http.request", "http.disconnect"]
