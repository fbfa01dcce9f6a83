"""A server that a proxy takes for a replica: `python replica.py NAME`.

It prints its port, and answers GET with its name and POST with the length of the body.
It hangs up on a POST to `/NAME` or `/NAME:predict`. It sends one event of `/events`,
and the last one when its standard input has a line.
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/events":
            self._send_events()
        else:
            self._answer(sys.argv[1])

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if self.path.removesuffix(":predict") == f"/{sys.argv[1]}":
            self.close_connection = True
        else:
            self._answer(str(len(body)))

    def _answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-Scheme", self.headers.get("X-Forwarded-Proto", ""))
        self.end_headers()
        self.wfile.write(text.encode())

    def _send_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"data: first\n\n")
        sys.stdin.readline()
        self.wfile.write(b"data: last\n\n")
        self.close_connection = True

    def log_message(self, *arguments):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
