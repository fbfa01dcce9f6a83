from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import RequestTooLarge, error_response

# Streamed to disk, with limits of their own.
_UPLOADS = "/v1/datasets"


class BodyLimit:
    """Refuses bodies that are too large, before more of them is kept than may be.

    Args:
        app: What is behind it.
        max_bytes: Most bytes of a body that is no upload.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._message = (
            f"The body may have at most {max_bytes} bytes (TFBBB_MAX_BODY_BYTES); "
            "send less at once."
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == _UPLOADS:
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and int(length) > self._max_bytes:
            response = error_response(RequestTooLarge.status, self._message)
            await response(scope, receive, send)
            return
        left, answering = self._max_bytes, False

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0 and answering:
                return {"type": "http.disconnect"}
            if left < 0:
                # FastAPI lets no other exception through where it reads a body.
                raise HTTPException(RequestTooLarge.status, self._message)
            return message

        async def watched(message: Message) -> None:
            nonlocal answering
            answering = True
            await send(message)

        await self._app(scope, counted, watched)
