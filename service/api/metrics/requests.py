"""Metrics of HTTP requests."""

import time
from http import HTTPMethod

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = frozenset(HTTPMethod)


class RequestMetrics:
    """Counts requests by route template, and measures their duration.

    Requests that match no route, or have no valid key, get the route `none`, so that
    clients cannot create labels.
    """

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self._app = app
        self._requests = Counter(
            "tfbbb_http_requests",
            "Answered requests.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "tfbbb_http_request_duration_seconds",
            "Time from a request to the end of its response.",
            ["method", "route"],
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            route = route_template(scope)
            self._requests.labels(method, route, status).inc()
            self._seconds.labels(method, route).observe(time.perf_counter() - started)


def route_template(scope: Scope) -> str:
    """Returns the path of a request's route with its parameters, or `none`."""
    context = scope.get("fastapi", {}).get("effective_route_context")
    found = context or scope.get("route")
    return getattr(found, "path_format", None) or "none"
