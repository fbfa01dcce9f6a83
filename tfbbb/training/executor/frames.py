"""Messages on a stream of bytes: the length, then the content."""

import struct
from io import BufferedRWPair

_LENGTH = struct.Struct("!Q")


def write_frame(stream: BufferedRWPair, content: bytes) -> None:
    """Writes one message."""
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def read_frame(stream: BufferedRWPair) -> bytes | None:
    """Returns the next message; None if the stream ends before or within it."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = stream.read(length)
    return content if len(content) == length else None
