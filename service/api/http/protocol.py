"""Requests that FastAPI does not handle."""

import asyncio
import http
import time
from collections.abc import Mapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.api.http.errors import error_body
from service.api.http.requests import HEADER, choose_request_id
from service.predicting.batcher import Batcher
from service.shared.errors import Overloaded

# Of the request line with the headers, also of trailers.
_MAX_HEAD_BYTES = 2**16
_SECONDS_OF_HEAD = 30.0

# The ends of the paths of predictions.
_PREDICTIONS = (b":predict", b"/infer")


class JsonErrorProtocol(HttpToolsProtocol):
    """HTTP that answers malformed requests with a JSON error too.

    It also refuses predictions by their headers while the service is overloaded, at a
    fraction of the application's cost. This is counted, but not logged.

    The parser keeps headers, trailers and the framing of chunks without a limit, before
    any key is checked. So they must end within some bytes and seconds.
    """

    # Bytes received since the headers, a part of the body or the message ended.
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    # Why the prediction is refused whose body is still to come.
    _refusal: Overloaded | None = None
    # Whether the service counts the prediction that is being answered.
    _is_counted = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._application, self.app = self.app, self._begin

    async def _begin(self, scope: Any, receive: Any, send: Any) -> None:
        """Begins a request, a prediction in its turn."""
        if self._is_counted:
            await self._batcher.begin()
        await self._application(scope, receive, send)

    def connection_made(  # type: ignore[override]
        self, transport: asyncio.Transport
    ) -> None:
        """Begins the time in which the first headers must arrive."""
        super().connection_made(transport)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._end_head()
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses what the client sends, and refuses headers without an end."""
        while data and not self.transport.is_closing():
            left = _MAX_HEAD_BYTES - self._head_bytes
            piece, data = data[:left], data[left:]
            self._head_bytes += len(piece)
            super().data_received(piece)
            if self._head_bytes == _MAX_HEAD_BYTES:
                self._refuse(
                    431,
                    "The URL and the headers may have at most "
                    f"{_MAX_HEAD_BYTES} bytes; send data in the body.",
                )
        if self._head_bytes and self._head_timer is None:
            self._begin_head()

    def send_400_response(self, msg: str) -> None:
        """Answers a malformed request, and closes the connection."""
        self._refuse(400, "The request is not valid HTTP; /docs lists the API.")

    def on_message_begin(self) -> None:
        """Notes when the request has arrived."""
        super().on_message_begin()
        self.scope["arrived"] = time.monotonic()  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        """Starts the request, which others count from now on, or refuses it."""
        self._end_head()
        path = self.url.partition(b"?")[0]
        is_alone = self.cycle is None or self.cycle.response_complete
        if is_alone and not self._is_counted and path.endswith(_PREDICTIONS):
            refusal = self._batcher.arrive()
            self._is_counted = refusal is None
            if refusal is not None and self._stays_open():
                self._refusal = refusal
                return
            # Else the application refuses it.
        super().on_headers_complete()
        assert self.cycle is not None
        if not self.expect_100_continue:  # Else there are two heads.
            joined = _JoinedHead(self.transport)
            self.cycle.transport = joined  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        """Takes a part of the body."""
        self._end_head()
        if self._refusal is None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Notes that the request has come, and answers a refused one."""
        self._end_head()
        if self._refusal is None:
            super().on_message_complete()
            return
        given = dict(self.headers).get(HEADER.lower().encode(), b"")
        headers = {
            HEADER: choose_request_id(given.decode("latin-1")),
            "Retry-After": self._refusal.headers["Retry-After"],
        }
        body = error_body(str(self._refusal), Overloaded.code)
        self.transport.write(_response(Overloaded.status, headers, body))
        self._refusal = None
        super().on_response_complete()

    def on_response_complete(self) -> None:
        """Makes room for the next prediction."""
        self._leave()
        super().on_response_complete()

    def _stays_open(self) -> bool:
        """Returns whether the client needs no more than a response of this request."""
        parser = self.parser
        is_plain = not self.expect_100_continue and not parser.should_upgrade()
        # Pages of other origins need headers that the application knows.
        is_plain &= all(name != b"origin" for name, _ in self.headers)
        is_new = parser.get_http_version() == "1.1"
        return is_plain and is_new and bool(parser.should_keep_alive())

    @property
    def _batcher(self) -> Batcher:
        batcher: Batcher = self.app_state["service"].models.batcher
        return batcher

    def _leave(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._batcher.leave()

    def _begin_head(self) -> None:
        self._head_timer = self.loop.call_later(_SECONDS_OF_HEAD, self._refuse_late)

    def _end_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse_late(self) -> None:
        if self._head_bytes:
            self._refuse(
                408, f"The headers took longer than {_SECONDS_OF_HEAD:g} seconds."
            )
        else:  # A connection that a browser opened in advance.
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Answers with an error, unless a response is being sent, and disconnects."""
        cycle = self.cycle
        if cycle is None or not cycle.response_started or cycle.response_complete:
            body = error_body(message, http.HTTPStatus(status).name.lower())
            self.transport.write(_response(status, {"Connection": "close"}, body))
        self.transport.close()


def _response(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "Content-Type: application/json"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class _JoinedHead:
    """The transport of one response, whose head it sends together with the body.

    Each call of the system wakes up the client, which takes a tenth of the time of a
    small prediction. A head without a body is sent when the event loop turns.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None
        self.write = self._hold

    def _hold(self, data: bytes) -> None:
        self._head, self.write = data, self._join
        asyncio.get_running_loop().call_soon(self._flush)

    def _join(self, data: bytes) -> None:
        head, self._head = self._head, None
        self.write = self._transport.write
        self._transport.writelines([data] if head is None else [head, data])

    def _flush(self) -> None:
        if self._head is not None:
            self._transport.write(self._head)
            self._head = None

    def close(self) -> None:
        """Closes the connection when everything is sent."""
        self._flush()
        self._transport.close()
