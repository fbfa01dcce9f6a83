"""Requests that FastAPI does not handle, or handles at too high a cost."""

import http
import time

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.api.http.errors import error_response, service_error_response
from service.api.http.load_shedding import Door, is_prediction
from service.api.http.request_log import HEADER, choose_request_id

_MESSAGE = (
    "The request is not valid HTTP, or its URL has more than 65535 characters; /docs "
    "lists the API."
)


class JsonErrorProtocol(HttpToolsProtocol):
    """HTTP that answers malformed requests with a JSON error too.

    It also refuses predictions while the API is overloaded. A refusal here costs a
    fifth of one by a middleware: under three times the load that can be answered, this
    leaves the time to answer. It is counted, but not logged.
    """

    _refuses = False

    def send_400_response(self, msg: str) -> None:
        """Answers a malformed request, and closes the connection."""
        self._send(error_response(400, _MESSAGE, {"Connection": "close"}))
        self.transport.close()

    def on_message_begin(self) -> None:
        """Notes when the request has arrived."""
        super().on_message_begin()
        self.scope["arrived"] = time.monotonic()  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        """Starts the request, unless it is refused."""
        door: Door | None = self.app_state.get("door")
        # Other requests, such as those that wait for another of their connection, are
        # counted or refused by the middleware.
        is_alone = self.cycle is None or self.cycle.response_complete
        if door is None or not (is_alone and self._can_refuse()):
            super().on_headers_complete()
        elif door.is_open():
            door.enter()
            self.scope["entered"] = True  # type: ignore[typeddict-unknown-key]
            try:
                super().on_headers_complete()
            except BaseException:
                door.leave()  # The URL is malformed: the application is not called.
                raise
        else:
            self._refuses = True

    def on_body(self, body: bytes) -> None:
        """Takes a part of the body, which a refused request may have too."""
        if not self._refuses:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Answers a refused request, when it has ended."""
        if not self._refuses:
            super().on_message_complete()
            return
        self._refuses = False
        error = self.app_state["door"].refusal()
        given = dict(self.headers).get(HEADER.lower().encode(), b"").decode("latin-1")
        self._send(service_error_response(error, {HEADER: choose_request_id(given)}))
        self.on_response_complete()

    def _can_refuse(self) -> bool:
        """Whether the request is a prediction on a connection that stays open."""
        path = self.url.partition(b"?")[0].decode("latin-1")
        return (
            is_prediction(path)
            and self.parser.should_keep_alive()
            and not self.expect_100_continue
            and not self.parser.should_upgrade()
        )

    def _send(self, response: Response) -> None:
        status = http.HTTPStatus(response.status_code)
        lines = [f"HTTP/1.1 {status} {status.phrase}".encode()]
        lines += [name + b": " + value for name, value in response.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(response.body)]))


class HeadMiddleware:
    """Handles HEAD as GET; the server omits the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)
