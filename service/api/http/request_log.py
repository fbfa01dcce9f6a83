"""Request ids, and one line per request."""

import logging
import re
import time
from contextvars import ContextVar
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.shared.database import new_id, timestamp
from service.shared.json_types import JsonObject
from service.shared.logs import ACCESS

logger = logging.getLogger(ACCESS)

HEADER = "X-Request-Id"
# Probes ask these paths every few seconds.
_PROBES = ("/health/", "/v2/health/")
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
    neither the query, which may contain a key, nor any value of a row. Probes that
    succeed are not logged.
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
            is_probe = status < 400 and scope["path"].startswith(_PROBES)
            if logger.isEnabledFor(logging.INFO) and not is_probe:
                _log(scope, at, status, time.perf_counter() - started, fields)


def choose_request_id(given: str) -> str:
    """Returns the id that a request has given itself, or a new one."""
    return given if _SANE.fullmatch(given) else new_id()


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
    logger.info(
        "%s %s %d in %.1f ms, key %r, request %s",
        line["method"],
        # The path was decoded, and may have line breaks.
        quote(line["path"], safe="/:"),
        status,
        line["duration_ms"],
        line["key"],
        line["request_id"],
        extra={"fields": line},
    )
