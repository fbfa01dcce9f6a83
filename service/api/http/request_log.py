"""Request ids, and one line of JSON per request."""

import logging
import re
import sys
import time
from contextvars import ContextVar

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.shared.database import new_id, timestamp
from service.shared.json_types import JsonObject

logger = logging.getLogger("service.access")

HEADER = "X-Request-Id"
# Ids that need no quoting in logs and URLs.
_SANE = re.compile(r"[A-Za-z0-9._:+/=@-]{1,128}")

_fields: ContextVar[JsonObject | None] = ContextVar("fields", default=None)


def request_id() -> str | None:
    """Returns the id of the request that this task handles; None outside requests."""
    fields = _fields.get()
    return None if fields is None else fields["request_id"]


def logged_fields() -> JsonObject:
    """Returns the fields that the line of this task's request has so far."""
    return _fields.get() or {}


def add_to_log(**fields: object) -> None:
    """Adds fields to the line of the request that this task handles."""
    line = _fields.get()
    if line is not None:
        line.update(fields)


class RequestLog:
    """Gives every request an id, and logs it when its response has ended.

    The id is that of the header `X-Request-Id` if it has at most 128 letters, digits
    and `._:+/=@-`, else a new one. The response has the same header. The line has
    neither the query, which may contain a key, nor any value of a row.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, at, status = time.perf_counter(), time.time(), 500
        chosen = choose_request_id(Headers(scope=scope).get(HEADER, ""))
        scope.setdefault("state", {})["request_id"] = chosen
        fields: JsonObject = {"request_id": chosen}
        token = _fields.set(fields)

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = chosen
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            _fields.reset(token)
            if logger.isEnabledFor(logging.INFO):
                _log(scope, at, status, time.perf_counter() - started, fields)


def choose_request_id(given: str) -> str:
    """Returns the id that a request has given itself, or a new one."""
    return given if _SANE.fullmatch(given) else new_id()


def write_access_log() -> None:
    """Writes the lines to standard output."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)


def _log(
    scope: Scope, at: float, status: int, seconds: float, fields: JsonObject
) -> None:
    caller = scope.get("state", {}).get("caller")
    line = {
        "time": timestamp(round(at, 6)),
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "duration_ms": round(1e3 * seconds, 3),
        "key": None if caller is None else caller.name,
        **fields,
    }
    logger.info(orjson.dumps(line).decode())
