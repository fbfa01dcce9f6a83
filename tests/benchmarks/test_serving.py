import contextlib
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.benchmarks.programs import load, run_smoke

serving = load("serving")
load_generator = load("load_generator")

OURS = ("tfbbb", "plain FastAPI")


@pytest.mark.slow
def test_smoke_run_loses_no_request(tmp_path):
    output = tmp_path / "serving.json"
    measured = run_smoke("serving", tmp_path, output, "--servers", *OURS)
    services = {record["service"] for record in measured.records}
    assert services == set(OURS)
    for record in measured.select(load="1 connections"):
        assert record["answered"] == sum(record["statuses"].values()) > 0
    for record in measured.records:
        # Requests in binary, of which each must be answered, have other figures.
        assert not record.get("lost")
        assert not record.get("twice")
    (heavy,) = measured.select(load="24 × 500 rows × 784 × 400 draws")
    assert heavy["answered"] > 0
    assert "at 3 × capacity" in serving.report(measured)


class Server(BaseHTTPRequestHandler):
    """Answers the requests to one path at once, to another never."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/never":
            with contextlib.suppress(ConnectionError):
                self.rfile.read(1)  # Until the client hangs up.
            return
        self.send_response(503 if self.path == "/refused" else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        if self.path == "/twice":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    def log_message(self, *args):
        pass


@pytest.fixture
def port():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def send(port, path, monkeypatch, capsys, **given):
    settings = {
        "port": port,
        "path": path,
        "key": "a.b",
        "body": "{}",
        "connections": 5,
        "seconds": 0.3,
        "rate": 50.0,
        "deadline": 0.2,
    }
    text = io.StringIO(json.dumps(settings | given))
    monkeypatch.setattr("sys.stdin", text)
    load_generator.main()
    return json.loads(capsys.readouterr().out)


def test_requests_without_answer_refused_and_answered_twice_are_counted(
    port, monkeypatch, capsys
):
    found = send(port, "/never", monkeypatch, capsys, rate=10.0)
    assert (found["answered"], found["lost"]) == (0, 0)
    assert found["gave_up"] > 0
    found = send(port, "/refused", monkeypatch, capsys, deadline=60.0)
    (refused,) = found["statuses"].items()
    assert refused[0] == "503"
    assert 0 < refused[1] <= 15 - found["unsent"]
    assert found["refused_p99_ms"] > 0
    assert send(port, "/twice", monkeypatch, capsys)["twice"] > 0
    assert send(port, "/once", monkeypatch, capsys)["twice"] == 0
