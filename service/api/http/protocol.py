"""Malformed requests and HEAD requests, which FastAPI does not handle."""

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.api.http.errors import error_response

_MESSAGE = (
    "The request is not valid HTTP, or its URL has more than 65535 characters; /docs "
    "lists the API."
)


class JsonErrorProtocol(HttpToolsProtocol):
    """HTTP that answers malformed requests with a JSON error too."""

    def send_400_response(self, msg: str) -> None:
        """Answers a malformed request, and closes the connection."""
        response = error_response(400, _MESSAGE, {"Connection": "close"})
        lines = [b"HTTP/1.1 400 Bad Request"]
        lines += [name + b": " + value for name, value in response.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(response.body)]))
        self.transport.close()


class HeadMiddleware:
    """Handles HEAD as GET; the server omits the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)
