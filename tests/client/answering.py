"""A service that answers what a test tells it to."""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """What is sent; without a status the connection is closed instead."""

    status: int | None = 200
    body: Any = None
    broken: bool = False
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Answering:
    url: str = ""
    requests: list[Request] = field(default_factory=list)


@contextmanager
def answering(*answers):
    """Runs a server that gives the answers in turn, the last one again and again."""
    service = Answering()
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): text for name, text in self.headers.items()}
            service.requests.append(Request(self.command, self.path, headers, body))
            answer = left.pop(0) if len(left) > 1 else left[0]
            self.close_connection = True
            if answer.status is None:
                return
            content = answer.body
            if not isinstance(content, str):
                content = json.dumps(content)
            encoded = content.encode()
            self.send_response(answer.status)
            length = len(encoded) + (1 if answer.broken else 0)
            self.send_header("Content-Length", str(length))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(encoded)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, format, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
