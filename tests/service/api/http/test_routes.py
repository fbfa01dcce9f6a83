"""What is checked before a byte of a body is read."""

import asyncio
import contextlib
import re
import socket
from types import SimpleNamespace

import orjson
import pytest
from fastapi.routing import iter_route_contexts

from service.api.http.routes import ScopedRoute
from service.api.keys.credential import Scope
from service.api.keys.keyring import Caller
from service.app import create_app
from service.shared.settings import Settings

SETTINGS = Settings(max_body_bytes=5000)
CHUNKED = {"transfer-encoding": "chunked"}
MB = 2**20
# Paths that need no key. The body of a sign-in has the key, and may have 4 KiB.
OPEN = (*("/health/", "/v2/health/", "/v1/session", "/web/", "/guide"), "/openapi.json")


@pytest.fixture(scope="module")
def app():
    return create_app(SETTINGS)


def requests(app):
    """Method, path and route of everything that can be asked."""
    for context in iter_route_contexts(app.routes):
        path = re.sub(r"{[^}]*}", "1", str(context.path_format))
        for method in sorted(context.methods or ()):
            yield method, path, context.original_route


def ask(app, method, path, key, headers=None, body=None):
    """Status and message of an answer, and the bytes of the body asked for."""
    sent = []
    num_bytes = 0

    async def receive():
        nonlocal num_bytes
        assert body is not None, "the body was asked for"
        piece = next(body)
        num_bytes += len(piece)
        return {"type": "http.request", "body": piece, "more_body": True}

    async def send(message):
        sent.append(message)

    scopes = Scope(key).implied if key else []
    caller = Caller(key_id="1", name="a test", scopes=scopes)

    async def find(credential, of_session=False):
        return caller

    keyring = SimpleNamespace(find=find)
    batcher = SimpleNamespace(admitted=lambda _: contextlib.nullcontext())
    models = SimpleNamespace(knows=lambda _: False, batcher=batcher, predict=None)
    service = SimpleNamespace(settings=SETTINGS, keyring=keyring, models=models)
    given = {"content-type": "application/json"} | (headers or {})
    if key is not None:
        given["authorization"] = "Bearer a.b"
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(k.encode(), v.encode()) for k, v in given.items()],
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "state": {"service": service},
    }
    asyncio.run(app(scope, receive, send))
    content = b"".join(message.get("body", b"") for message in sent)
    message = orjson.loads(content)["error"] if method != "HEAD" else ""
    return sent[0]["status"], message, num_bytes


def test_no_body_is_read_without_a_key(app):
    for method, path, _ in requests(app):
        if path != "/" and not path.startswith(OPEN):
            status, *_ = ask(app, method, path, None, CHUNKED)
            assert status == 401, (method, path)


def test_no_body_is_read_without_the_scope(app):
    seen = set()
    for method, path, route in requests(app):
        if isinstance(route, ScopedRoute) and route.scope is not None:
            less = [scope for scope in Scope if route.scope not in scope.implied]
            for key in ("", *less):
                status, message, _ = ask(app, method, path, key, CHUNKED)
                assert status == 403, (method, path, key)
                assert f"the scope {route.scope};" in message
            seen.add(route.scope)
    assert seen == set(Scope)


def test_no_body_over_the_limit_is_read(app):
    for method, path, route in requests(app):
        if getattr(route, "scope", None) and route.body_limit is not None:
            headers = {"content-length": "1048577"}
            status, message, _ = ask(app, method, path, "admin", headers)
            assert status == 413, (method, path)
            assert "The body may have at most " in message


def test_only_uploads_have_no_limit_of_the_route(app):
    unlimited = {
        (method, path)
        for method, path, route in requests(app)
        if isinstance(route, ScopedRoute) and route.body_limit is None
    }
    files = {place for place in unlimited if place[1].endswith(("-file", "/file"))}
    assert unlimited - files == {("POST", "/v1/datasets")}


@pytest.mark.parametrize(
    ("method", "path", "limit", "named"),
    [
        ("POST", "/v1/jobs", MB, "at most 1048576 bytes; send fewer at once."),
        ("POST", "/v1/models/1:predict", 5000, "5000 bytes (TFBBB_MAX_BODY_BYTES);"),
    ],
)
def test_body_without_length_is_read_up_to_the_limit(app, method, path, limit, named):
    body = iter(lambda: b" " * 1000, None)
    status, message, num_bytes = ask(app, method, path, "admin", None, body)
    assert (status, named in message) == (413, True), message
    assert limit < num_bytes <= limit + 1000


def test_no_body_of_an_unknown_route_is_read(app):
    for method in ("GET", "POST", "PUT", "DELETE"):
        for path in ("/v1/nothing", "/v1/models/1:nothing", "/v1/models/1/2/3"):
            assert ask(app, method, path, "admin")[0] == 404
            assert ask(app, method, path, None)[0] == 401


def test_a_refused_body_is_not_asked_to_continue(client):
    lines = ["POST /v1/jobs HTTP/1.1", "Host: localhost", "Expect: 100-continue"]
    lines += ["Content-Length: 31457280", "", ""]
    address = ("127.0.0.1", client.base_url.port)
    with socket.create_connection(address) as wire:
        wire.sendall("\r\n".join(lines).encode())
        assert wire.recv(12) == b"HTTP/1.1 401"


def test_every_route_is_closed_or_known_to_be_open(app):
    open_paths = {
        path
        for _, path, route in requests(app)
        if getattr(route, "scope", None) is None
    }
    assert open_paths == {
        *("/", "/web/1/1", "/guide", "/guide/1"),
        *("/docs", "/docs/1", "/openapi.json"),
        *("/health/live", "/health/ready"),
        *("/health/predicting", "/health/training"),
        *("/v2/health/live", "/v2/health/ready"),
        "/v1/session",
    }
