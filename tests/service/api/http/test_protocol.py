"""Bytes that clients without a key may send: no request, or no end of one."""

import asyncio
import contextlib
import resource
import socket
import time
from contextlib import contextmanager
from unittest.mock import Mock, call

import pytest
import uvicorn
from uvicorn.server import ServerState

from service.api.http import protocol
from service.api.server import raise_descriptor_limit
from service.shared.errors import Overloaded
from service.shared.settings import Settings
from tests.service.serving import ADMIN_KEY, serving

BEGIN = b"GET /health/live HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """A service without models."""
    models = tmp_path_factory.mktemp("models")
    settings = Settings(models=models, job_slots=0)
    with serving(settings) as client:
        yield client


@contextmanager
def connected(api):
    url = api.base_url
    with socket.create_connection((url.host, url.port or 80), timeout=60) as connection:
        yield connection


def read_all(connection):
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            received += part
    return received


def status_lines(received):
    lines = received.split(b"\r\n")
    return [line for line in lines if line.startswith(b"HTTP/1.1 ")]


@pytest.mark.parametrize(
    ("begin", "block"),
    [
        pytest.param(BEGIN + b"X-Long: ", b"a" * 2**16, id="one header"),
        pytest.param(b"GET /", b"a" * 2**16, id="url"),
    ],
)
def test_headers_without_end_are_refused_and_keep_nobody_waiting(api, begin, block):
    sent, most = 0, 120 * 2**20
    with connected(api) as connection:
        connection.sendall(begin)
        with contextlib.suppress(OSError):  # It disconnects.
            while sent < most:
                connection.sendall(block)
                sent += len(block)
        received = read_all(connection)
    assert sent < most
    assert status_lines(received) == [b"HTTP/1.1 431 Request Header Fields Too Large"]
    assert b'"error":"The URL and the headers may have at most 65536 bytes' in received
    assert api.get("/health/live").status_code == 200


def test_headers_may_have_65536_bytes_in_any_pieces(api):
    end = b"\r\n\r\n"
    for num_bytes, status in ((2**16 - 1, b"200 OK"), (2**16 + 1, b"431 ")):
        begin = BEGIN + b"Connection: close\r\nX: "
        head = begin + b"a" * (num_bytes - len(begin) - len(end)) + end
        for size in (1000, num_bytes):
            with connected(api) as connection:
                for start in range(0, num_bytes, size):
                    connection.sendall(head[start : start + size])
                received = read_all(connection)
            assert status_lines(received)[0].startswith(b"HTTP/1.1 " + status)


def test_headers_must_arrive_in_time(api, monkeypatch):
    monkeypatch.setattr(protocol, "_SECONDS_OF_HEAD", 0.5)
    with connected(api) as slow, connected(api) as silent:
        started = time.monotonic()
        # Each byte is in time.
        for byte in BEGIN:
            try:
                slow.sendall(bytes([byte]))
            except OSError:
                break
            time.sleep(0.1)
            if time.monotonic() - started > 1.5:
                break
        assert status_lines(read_all(slow)) == [b"HTTP/1.1 408 Request Timeout"]
        assert read_all(silent) == b""
    # An idle connection is kept.
    assert api.get("/health/live").status_code == 200
    time.sleep(0.7)
    assert api.get("/health/live").status_code == 200


def test_malformed_request_is_answered(api):
    with connected(api) as connection:
        connection.sendall(b"hello\r\n\r\n")
        received = read_all(connection)
    assert status_lines(received) == [b"HTTP/1.1 400 Bad Request"]
    assert b'"error":"The request is not valid HTTP' in received


def test_client_that_expects_to_continue_is_told_to(api):
    lines = [
        "POST /v1/models/none:predict HTTP/1.1",
        f"Host: x\r\nAuthorization: Bearer {ADMIN_KEY}",
        "Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close",
    ]
    with connected(api) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        assert status_lines(connection.recv(65536)) == [b"HTTP/1.1 100 Continue"]
        connection.sendall(b"{}")
        assert status_lines(read_all(connection)) == [b"HTTP/1.1 404 Not Found"]


def test_head_is_sent_with_the_body_or_at_the_next_turn():
    async def respond(*parts):
        transport = Mock()
        joined = protocol._JoinedHead(transport)
        for part in parts:
            joined.write(part)
        await asyncio.sleep(0)
        return list(transport.mock_calls)

    sent = asyncio.run(respond(b"head", b"one", b"two"))
    assert sent == [call.writelines([b"head", b"one"]), call.write(b"two")]
    assert asyncio.run(respond(b"head")) == [call.write(b"head")]


HEAD = b"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n"
REQUEST = HEAD + b"Content-Length: 9\r\n\r\n123456789"


def responses(*pieces):
    """What an overloaded service writes after each piece, and what it begins."""
    models, transport = Mock(), Mock()
    models.batcher.arrive.side_effect = lambda: Overloaded("too much")
    transport.is_closing.return_value = False
    written = []
    begun = []

    async def application(scope, receive, send):
        begun.append(scope["path"])

    async def run():
        config = uvicorn.Config(application, log_config=None, access_log=False)
        config.load()
        state = {"service": Mock(models=models)}
        connection = protocol.JsonErrorProtocol(config, ServerState(), state)
        connection.connection_made(transport)
        for piece in pieces:
            transport.write.reset_mock()
            connection.data_received(piece)
            written.append(b"".join(x.args[0] for x in transport.write.mock_calls))
        await asyncio.sleep(0)
        connection.connection_lost(None)

    asyncio.run(run())
    return written, begun


@pytest.mark.parametrize("place", [3, -9, -5])
def test_refused_prediction_is_answered_when_it_has_come(place):
    whole, begun = responses(REQUEST, REQUEST)
    assert whole[0] == whole[1]
    assert whole[0].startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nX-Request-Id: mine\r\nRetry-After: 1\r\n" in whole[0]
    assert b'{"error":"too much","code":"overloaded","field":null}' in whole[0]
    pieces, begun_then = responses(REQUEST[:place], REQUEST[place:], REQUEST)
    assert pieces == [b"", whole[0], whole[0]]
    assert not begun
    assert not begun_then


@pytest.mark.parametrize("field", [b"Connection: close", b"Expect: 100-continue"])
def test_application_refuses_where_the_connection_needs_more(field):
    request = HEAD + field + b"\r\nContent-Length: 9\r\n\r\n123456789"
    assert responses(request) == ([b""], ["/v1/models/m:predict"])


def test_service_may_have_more_connections_than_systems_begin_with():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 2048:
        pytest.skip("the system allows no more descriptors")
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(before[1], 2**16)
        # One that is higher stays.
        raise_descriptor_limit()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
