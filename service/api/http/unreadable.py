"""Answers malformed HTTP."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.api.http.errors import error_response

_MESSAGE = (
    "This is no HTTP that can be read: malformed, or with a URL of more than 65535 "
    "characters; /docs lists the API."
)


class OneShapeProtocol(HttpToolsProtocol):
    """HTTP whose malformed requests, too, are answered with an error in JSON."""

    def send_400_response(self, msg: str) -> None:
        """Answers a malformed request, and closes the connection."""
        response = error_response(400, _MESSAGE, {"Connection": "close"})
        lines = [b"HTTP/1.1 400 Bad Request"]
        lines += [name + b": " + value for name, value in response.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(response.body)]))
        self.transport.close()
