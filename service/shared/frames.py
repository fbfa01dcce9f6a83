"""How the API and the model process speak over a socket.

A frame is two lengths, a header of JSON and a body of bytes as they are: the body of a
request and that of its answer pass through without being parsed on the way.
"""

import asyncio
import json
import socket
import struct
from dataclasses import dataclass
from typing import Any

_LENGTHS = struct.Struct("!IQ")
# A copy that costs less than waking the other side twice.
_SENT_AT_ONCE = 2**16


@dataclass(frozen=True)
class Frame:
    """A question or an answer.

    Args:
        header: What it is about.
        body: What goes with it.
    """

    header: dict[str, Any]
    body: bytes | bytearray = b""

    def head(self) -> bytes:
        """The bytes before the body: the lengths and the header."""
        header = json.dumps(self.header).encode()
        return _LENGTHS.pack(len(header), len(self.body)) + header


def send(connection: socket.socket, frame: Frame) -> None:
    """Sends a frame; waits until it is sent."""
    head = frame.head()
    if len(frame.body) <= _SENT_AT_ONCE:
        connection.sendall(head + frame.body)
    else:
        connection.sendall(head)
        connection.sendall(frame.body)


def receive(connection: socket.socket) -> Frame | None:
    """Waits for a frame; there is none when the other side has hung up."""
    lengths = _receive(connection, _LENGTHS.size)
    if lengths is None:
        return None
    header_size, body_size = _LENGTHS.unpack(lengths)
    header = _receive(connection, header_size)
    body = _receive(connection, body_size)
    if header is None or body is None:
        return None
    return Frame(json.loads(header), body)


def _receive(connection: socket.socket, size: int) -> bytearray | None:
    received = bytearray(size)
    rest = memoryview(received)
    while rest:
        count = connection.recv_into(rest)
        if not count:
            return None
        rest = rest[count:]
    return received


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: Frame
) -> Frame:
    """Sends a frame and waits for the answer.

    Raises:
        OSError: If the connection broke.
        asyncio.IncompleteReadError: If it was closed.
    """
    writer.writelines((question.head(), question.body))
    await writer.drain()
    header_size, body_size = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
    # One wait for both.
    rest = await reader.readexactly(header_size + body_size)
    return Frame(json.loads(rest[:header_size]), rest[header_size:])
