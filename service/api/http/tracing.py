"""OpenTelemetry traces of requests, where an endpoint is set."""

import os
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.http.request_log import logged_fields
from service.api.metrics.endpoints import route_template
from service.shared.settings import SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

# The variables of OpenTelemetry, which its exporter reads.
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def exporting_provider() -> "TracerProvider | None":
    """Returns the provider that exports spans; None if no endpoint is set."""
    endpoint = next((name for name in ENDPOINTS if os.environ.get(name)), None)
    if endpoint is None:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingsError(
            f"{endpoint} is set, but OpenTelemetry is not installed: run `pip install "
            "'tfbbb[opentelemetry]'`, or unset the variable."
        ) from None
    name = os.environ.get("OTEL_SERVICE_NAME", "tfbbb")
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Tracing:
    """Makes a span of every request, a child of the one in its `traceparent`."""

    def __init__(self, app: ASGIApp, provider: "TracerProvider") -> None:
        from opentelemetry.trace.propagation.tracecontext import (
            TraceContextTextMapPropagator,
        )

        self._app = app
        self._tracer = provider.get_tracer("tfbbb")
        self._parent = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry.trace import SpanKind, StatusCode

        parent = self._parent.extract(dict(Headers(scope=scope)))
        with self._tracer.start_as_current_span(
            scope["method"], context=parent, kind=SpanKind.SERVER
        ) as span:
            span.set_attribute("http.request.method", scope["method"])
            span.set_attribute("url.path", scope["path"])

            async def watch(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = message["status"]
                    span.set_attribute("http.response.status_code", status)
                    if status >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            try:
                await self._app(scope, receive, watch)
            finally:
                route = route_template(scope)
                span.update_name(f"{scope['method']} {route}")
                if route != "none":
                    span.set_attribute("http.route", route)
                for name, value in logged_fields().items():
                    span.set_attribute(f"tfbbb.{name}", value)
