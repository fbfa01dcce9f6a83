"""Bodies that a client has compressed."""

import asyncio
import gzip
import io
import zlib

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope

from service.shared.errors import InvalidRequest, RequestTooLarge, UnsupportedMediaType

_ENCODINGS = ("gzip", "zstd")


def content_encoding(scope: Scope) -> str | None:
    """Returns how the body of a request is compressed, None if it is not."""
    given = Headers(scope=scope).get("content-encoding", "")
    encoding = given.strip().lower().removeprefix("x-")
    if encoding in ("", "identity"):
        return None
    if encoding not in _ENCODINGS:
        error = UnsupportedMediaType(
            "The body may be compressed by gzip or zstd, or sent as it is. "
            f"Received: Content-Encoding {given!r:.100}"
        )
        error.headers = {"Accept-Encoding": ", ".join(_ENCODINGS)}
        raise error
    return encoding


def decompressed(receive: Receive, encoding: str, most: int, message: str) -> Receive:
    """Returns a `receive` of the decompressed body, at most so many bytes of it.

    A longer body raises an exception with the `message` before it is decompressed.
    """
    is_read = False

    async def read() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        compressed, more = bytearray(), True
        while more:
            received = await receive()
            if received["type"] != "http.request":
                return received
            compressed += received.get("body", b"")
            more = received.get("more_body", False)
            if len(compressed) > most:
                raise HTTPException(RequestTooLarge.status, message)
        is_read = True
        body = await asyncio.to_thread(_decompress, bytes(compressed), encoding, most)
        if len(body) > most:
            raise HTTPException(RequestTooLarge.status, message)
        return {"type": "http.request", "body": body, "more_body": False}

    return read


def _decompress(compressed: bytes, encoding: str, most: int) -> bytes:
    """Returns at most one byte more than `most`, without computing others."""
    try:
        if encoding == "gzip":
            with gzip.open(io.BytesIO(compressed)) as file:
                return file.read(most + 1)
        # Most services never need it.
        import pyarrow as pa

        source = pa.BufferReader(compressed)
        with pa.input_stream(source, compression=encoding) as stream:
            found: bytes = stream.read(most + 1)
            return found
    except (OSError, EOFError, zlib.error) as error:
        # FastAPI passes on no other exception while it reads a body.
        raise HTTPException(
            InvalidRequest.status,
            f"The body is not what its Content-Encoding says: {error}. "
            f"Received: {encoding}, {len(compressed)} bytes",
        ) from None
