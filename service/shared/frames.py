"""The protocol between the API and the model process, over a socket.

A frame is two lengths, a JSON header and a body of raw bytes. The API passes the bodies
of requests and responses through without parsing them.
"""

import asyncio
import json
import socket
import struct
from dataclasses import dataclass
from typing import Any

_LENGTHS = struct.Struct("!IQ")
# Up to this size, a copy costs less than waking the receiver twice.
_SENT_AT_ONCE = 2**16


@dataclass(frozen=True)
class Frame:
    """A request or a response.

    Args:
        header: The operation and its arguments, or the result.
        body: The raw bytes.
    """

    header: dict[str, Any]
    body: bytes | bytearray = b""

    def head(self) -> bytes:
        """Returns the bytes before the body: the lengths and the header."""
        header = json.dumps(self.header).encode()
        return _LENGTHS.pack(len(header), len(self.body)) + header


def send(connection: socket.socket, frame: Frame) -> None:
    """Sends a frame and waits until it is sent."""
    head = frame.head()
    if len(frame.body) <= _SENT_AT_ONCE:
        connection.sendall(head + frame.body)
    else:
        connection.sendall(head)
        connection.sendall(frame.body)


def receive(connection: socket.socket) -> Frame | None:
    """Waits for a frame; returns None if the other side has disconnected."""
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
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Frame
) -> Frame:
    """Sends a request and waits for the response.

    Raises:
        OSError: If the connection broke.
        asyncio.IncompleteReadError: If the connection was closed.
    """
    writer.writelines((request.head(), request.body))
    await writer.drain()
    header_size, body_size = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
    # Reads both at once.
    rest = await reader.readexactly(header_size + body_size)
    return Frame(json.loads(rest[:header_size]), rest[header_size:])
