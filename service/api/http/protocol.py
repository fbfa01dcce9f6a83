"""Requests that FastAPI does not handle."""

import asyncio
import functools
import http
import re
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
_OTHER_FIELDS = (
    rb"(?:(?!content-length:|transfer-encoding:|expect:|upgrade:|"
    rb"connection:(?! *keep-alive\r))[\w-]+:[^\r\n]*\r\n)*"
)
# The head of a prediction of so many bytes, on a connection that stays open.
_PREDICTION = re.compile(
    rb"POST /[^ ?\r\n]*(?::predict|/infer)(?:\?[^ \r\n]*)? HTTP/1\.1\r\n(?i:"
    + _OTHER_FIELDS
    + rb"content-length: *(\d{1,15})\r\n"
    + _OTHER_FIELDS
    + rb")\r\n"
)
_REQUEST_ID = re.compile(rb"(?i)\r\n%b: *([^\r\n]*)" % HEADER.encode())


class JsonErrorProtocol(HttpToolsProtocol):
    """HTTP that answers malformed requests with a JSON error too.

    It also refuses predictions while the service is overloaded, before they are parsed.
    A refusal here costs a tenth of one by the application: under three times the load
    that can be answered, this leaves the time to answer. It is counted, but not logged.

    The parser keeps headers, trailers and the framing of chunks without a limit, before
    any key is checked. So they must end within some bytes and seconds.
    """

    # Bytes received since the headers, a part of the body or the message ended.
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    # Whether the parser has no part of a message.
    _is_between = True
    # The response to a refused prediction, and the bytes of its body that are to come.
    _refusal = b""
    _unread = 0
    _refused_at = float("-inf")
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
        if self._is_between and (self.cycle is None or self.cycle.response_complete):
            data = self._after_refused(data)
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
        self._is_between = False
        self.scope["arrived"] = time.monotonic()  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        """Starts the request, which others count from now on."""
        self._end_head()
        path = self.url.partition(b"?")[0]
        is_alone = self.cycle is None or self.cycle.response_complete
        if is_alone and not self._is_counted and path.endswith(_PREDICTIONS):
            # The application may refuse it.
            self._is_counted = self._batcher.arrive() is None
        super().on_headers_complete()
        assert self.cycle is not None
        if not self.expect_100_continue:  # Else there are two heads.
            joined = _JoinedHead(self.transport)
            self.cycle.transport = joined  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        """Takes a part of the body."""
        self._end_head()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Notes that the parser has all of the request."""
        self._end_head()
        self._is_between = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Makes room for the next prediction."""
        self._leave()
        super().on_response_complete()

    def _after_refused(self, data: bytes) -> bytes:
        """Returns what follows a prediction that is refused, which is not parsed."""
        if not self._refusal:
            head = _PREDICTION.match(data)
            refusal = None if head is None else self._batcher.arrive()
            if head is None or refusal is None:
                self._is_counted = head is not None
                return data
            self._end_head()
            given = _REQUEST_ID.search(data, 0, head.end())
            request_id = choose_request_id(given[1].decode("latin-1") if given else "")
            response = _refused(str(refusal), refusal.headers["Retry-After"])
            self._refusal = response.replace(b"REQUEST", request_id.encode(), 1)
            self._unread, data = int(head[1]), data[head.end() :]
        if len(data) < self._unread:
            self._unread -= len(data)
            return b""
        self.transport.write(self._refusal)
        data, self._refusal = data[self._unread :], b""
        self._refused_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_handler()
        return data

    def timeout_keep_alive_handler(self) -> None:
        """Closes a connection on which nothing was answered or refused for long."""
        seconds = self.timeout_keep_alive
        if self._refusal or self.loop.time() < self._refused_at + seconds:
            self.timeout_keep_alive_task = self.loop.call_later(
                seconds, self.timeout_keep_alive_handler
            )
        else:
            super().timeout_keep_alive_handler()

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


@functools.lru_cache(1024)
def _refused(message: str, seconds: str) -> bytes:
    """Returns the response to a prediction, with `REQUEST` in place of its id."""
    headers = {HEADER: "REQUEST", "Retry-After": seconds}
    return _response(Overloaded.status, headers, error_body(message, Overloaded.code))


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
