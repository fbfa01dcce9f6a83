"""Spans of requests, in memory and at a stand-in collector."""

import asyncio
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from service.api.http.errors import answer_errors_in_one_shape
from service.api.http.request_log import HEADER, RequestLog, add_to_log
from service.api.http.tracing import ENDPOINTS, Tracing, exporting_provider
from service.shared.settings import SettingsError

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def spans(*paths: str, **headers: str) -> Any:
    exporter, app = InMemorySpanExporter(), FastAPI()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    @app.get("/models/{name}")
    async def model(name: str) -> None:
        add_to_log(model=name, version=2, rows=3)
        if name == "bug":
            raise RuntimeError("a bug")

    app.add_middleware(Tracing, provider=provider)
    app.add_middleware(RequestLog)
    answer_errors_in_one_shape(app)

    async def request() -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as made:
            for path in paths:
                await made.get(path, headers=headers)

    asyncio.run(request())
    return exporter.get_finished_spans()


def test_span_is_a_child_with_route_status_and_logged_fields() -> None:
    parent = f"00-{TRACE}-{PARENT}-01"
    (span,) = spans("/models/a?key=secret", **{"traceparent": parent, HEADER: "abc"})
    assert span.name == "GET /models/{name}"
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == PARENT
    assert dict(span.attributes) == {
        "http.request.method": "GET",
        "url.path": "/models/a",
        "http.route": "/models/{name}",
        "http.response.status_code": 200,
        "tfbbb.request_id": "abc",
        "tfbbb.model": "a",
        "tfbbb.version": 2,
        "tfbbb.rows": 3,
    }


def test_failed_request_is_an_error_and_an_unknown_path_is_none() -> None:
    failed, unknown = spans("/models/bug", "/no/such/path")
    assert failed.status.status_code is StatusCode.ERROR
    assert unknown.status.status_code is StatusCode.UNSET
    assert unknown.name == "GET none"


def test_no_endpoint_means_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert exporting_provider() is None


def test_endpoint_without_the_extra_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINTS[0], "http://127.0.0.1:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    with pytest.raises(SettingsError, match=r"tfbbb\[opentelemetry\]"):
        exporting_provider()


def test_spans_reach_the_collector_at_the_latest_at_exit() -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    received: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    program = """
from service.api.http.tracing import exporting_provider
provider = exporting_provider()
with provider.get_tracer("tfbbb").start_as_current_span("GET /models"):
    pass
"""
    variables = {ENDPOINTS[0]: f"http://127.0.0.1:{server.server_port}"}
    subprocess.run(
        [sys.executable, "-c", program], env=os.environ | variables, check=True
    )
    server.shutdown()
    server.server_close()
    ((path, body),) = received
    assert path == "/v1/traces"
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    names = {a.key: a.value.string_value for a in resource.resource.attributes}
    assert names["service.name"] == "tfbbb"
    assert resource.scope_spans[0].spans[0].name == "GET /models"
