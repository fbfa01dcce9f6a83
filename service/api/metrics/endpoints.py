"""`/metrics`, in the text format of Prometheus."""

import asyncio
import time
from http import HTTPMethod

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.http.errors import responses
from service.api.http.routes import ScopedRoute
from service.api.keys.caller import may_read_metrics
from service.api.state import ServiceState, State
from service.shared.errors import Unavailable

router = APIRouter(
    tags=["health"], dependencies=[may_read_metrics], route_class=ScopedRoute
)


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses=responses(Unavailable)
    | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(state: State) -> Response:
    """Returns metrics of requests, jobs, processes, models and their uncertainty."""
    text = await asyncio.to_thread(state.metrics.text)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


_METHODS = frozenset(HTTPMethod)
_OTHER = "other"
MOST_MODELS = 100


class RequestMetrics:
    """Counts requests by route template and model, and measures their duration.

    Requests that match no route, or have no valid key, get the route `none`, and models
    that the service does not know the label `other`, so that clients cannot create
    labels. So do known models once `MOST_MODELS` have a label of their own.
    """

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self._app = app
        self._models: set[str] = set()
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
            model = self._model(scope)
            seconds = time.perf_counter() - started
            self._requests.labels(method, route, model, status).inc()
            self._seconds.labels(method, route, model).observe(seconds)

    def _model(self, scope: Scope) -> str:
        """Returns the label of a request's model, which is empty if it has none."""
        name = scope.get("path_params", {}).get("name")
        if name is None or name in self._models:
            return name or ""
        state: ServiceState = scope["state"]["service"]
        if len(self._models) < MOST_MODELS and state.models.knows(name):
            self._models.add(name)
            return str(name)
        return _OTHER


def route_template(scope: Scope) -> str:
    """Returns the path of a request's route with its parameters, or `none`."""
    context = scope.get("fastapi", {}).get("effective_route_context")
    found = context or scope.get("route")
    return getattr(found, "path_format", None) or "none"
