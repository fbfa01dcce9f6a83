"""A stand-in for the Jobs API of a Ray cluster, over HTTP."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JobsApi:
    """The jobs of a cluster without nodes: tests say what becomes of them.

    Attributes:
        address: Where the API is.
        version: The version of Ray that it tells.
        jobs: What was submitted and what became of it, by submission id.
        submissions: How many submissions were accepted.
        token: The token that requests must send; None if any request is answered.
    """

    def __init__(self, address: str, version: str) -> None:
        self.address = address
        self.version = version
        self.jobs: dict[str, dict[str, Any]] = {}
        self.submissions = 0
        self.token: str | None = None

    def set(self, submission_id: str, status: str, **fields: Any) -> None:
        """Changes the state of a job."""
        self.jobs[submission_id] |= {"status": status, **fields}

    def refuse(self, authorization: str) -> tuple[int, str] | None:
        """Returns Ray's answer to a request without the token, or None."""
        if self.token is None or authorization == f"Bearer {self.token}":
            return None
        if authorization:
            return 403, "Forbidden: Invalid authentication token"
        return 401, "Unauthorized: Missing authentication token"

    def answer(self, method: str, path: list[str], body: Any) -> tuple[int, Any]:
        match method, path:
            case "GET", ["version"]:
                return 200, {"ray_version": self.version, "version": "4"}
            case "POST", ["jobs"]:
                return self._submit(body)
            case _, ["jobs", name, *_] if name not in self.jobs:
                return 404, f"Job {name} does not exist"
            case "GET", ["jobs", name]:
                return 200, self.jobs[name]
        return 404, "no such path"

    def _submit(self, request: dict[str, Any]) -> tuple[int, Any]:
        name = request["submission_id"]
        if name in self.jobs:
            return 400, f"Job with submission_id {name} already exists."
        self.submissions += 1
        self.jobs[name] = {"type": "SUBMISSION", "status": "PENDING", **request}
        return 200, {"job_id": name, "submission_id": name}


@contextmanager
def jobs_api(version: str) -> Iterator[JobsApi]:
    """Runs the stand-in until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length) or "null")
            path = [part for part in self.path.split("/") if part][1:]
            refused = api.refuse(self.headers.get("authorization", ""))
            status, content = refused or api.answer(self.command, path, body)
            text = content if isinstance(content, str) else json.dumps(content)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_GET

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api = JobsApi(f"http://127.0.0.1:{server.server_port}", version)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
