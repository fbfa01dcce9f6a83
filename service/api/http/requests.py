"""What every request gets: an id, a line in the log, and its place in the metrics."""

import logging
import random
import re
import time
from contextvars import ContextVar
from http import HTTPMethod
from urllib.parse import quote

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.shared.logs import ACCESS, format_time
from tfbbb.base.types import JsonObject

logger = logging.getLogger(ACCESS)

HEADER = "X-Request-Id"
_RAW_HEADER = HEADER.lower().encode()
# Probes ask these paths every few seconds.
_PROBES = ("/health/", "/v2/health/")
# Ids that need no quoting in logs and URLs.
_SANE = re.compile(r"[A-Za-z0-9._:+/=@-]{1,128}")
_METHODS = frozenset(HTTPMethod)

_fields: ContextVar[JsonObject | None] = ContextVar("fields", default=None)


def add_to_log(**fields: object) -> None:
    """Adds fields to the line of the request that this task handles."""
    line = _fields.get()
    if line is not None:
        line.update(fields)


def media_type(request: Request) -> str:
    """Returns the media type of the body in lower case; empty if it has none."""
    given = request.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower()


class Requests:
    """Gives every request an id, logs it, and counts it by route template and model.

    The id is that of the header `X-Request-Id` if it is sane, else a new one. The line
    has neither the query, which may contain a key, nor any value of a row. Probes that
    succeed are not logged.

    Requests without a route or a valid key are counted with the route `none`, and
    unknown models as `other`, so that clients cannot create labels. HEAD is handled as
    GET; the server omits the body.
    """

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self._app = app
        self._requests = Counter(
            "tfbbb_http_requests",
            "Answered requests.",
            ["method", "route", "model", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "tfbbb_http_request_duration_seconds",
            "Time from a request to the end of its response.",
            ["method", "route", "model"],
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, at, status = time.perf_counter(), time.time(), 500
        method: str = scope["method"]
        chosen = choose_request_id(Headers(scope=scope).get(HEADER, ""))
        scope.setdefault("state", {})["request_id"] = chosen
        if method == "HEAD":
            scope = {**scope, "method": "GET"}
        fields: JsonObject = {"request_id": chosen}
        token = _fields.set(fields)

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((_RAW_HEADER, chosen.encode("latin-1")))
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            _fields.reset(token)
            seconds = time.perf_counter() - started
            self._count(method, scope, status, seconds)
            is_probe = status < 400 and scope["path"].startswith(_PROBES)
            if logger.isEnabledFor(logging.INFO) and not is_probe:
                caller = scope["state"].get("caller")
                line = {
                    "time": format_time(at),
                    "method": method,
                    "path": scope["path"],
                    "status": status,
                    "duration_ms": round(1e3 * seconds, 3),
                    "key": None if caller is None else caller.name,
                    **fields,
                }
                _log(line)

    def _count(self, method: str, scope: Scope, status: int, seconds: float) -> None:
        context = scope.get("fastapi", {}).get("effective_route_context")
        route = getattr(context or scope.get("route"), "path_format", None) or "none"
        method = method if method in _METHODS else "other"
        name: str | None = scope.get("path_params", {}).get("name")
        if name is not None and not scope["state"]["service"].models.knows(name):
            name = "other"
        self._requests.labels(method, route, name or "", status).inc()
        self._seconds.labels(method, route, name or "").observe(seconds)


def choose_request_id(given: str) -> str:
    """Returns the id that a request has given itself, or a new one."""
    # Nobody is kept from guessing it: 96 bits without a call of the system.
    return given if _SANE.fullmatch(given) else f"{random.getrandbits(96):024x}"


def _log(line: JsonObject) -> None:
    logger.info(
        "%s %s %d in %.1f ms, key %r, request %s",
        line["method"],
        # The path was decoded, and may have line breaks.
        quote(line["path"], safe="/:"),
        line["status"],
        line["duration_ms"],
        line["key"],
        line["request_id"],
        extra={"fields": line},
    )
