"""The protocol between the API and the model process, over a socket.

A frame is two lengths, a JSON header and a body of raw bytes. The API passes the bodies
of requests and responses through without parsing them. One connection carries many
requests at a time: each header has an `id`, which the header of the response repeats.
"""

import asyncio
import json
import socket
import struct
from dataclasses import dataclass
from typing import BinaryIO

import orjson

from service.shared.json_types import JsonObject

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

    header: JsonObject
    body: bytes | bytearray = b""

    def head(self) -> bytes:
        """Returns the bytes before the body: the lengths and the header."""
        try:
            header = orjson.dumps(self.header)
        except TypeError:
            # A message may quote half a surrogate pair, which UTF-8 lacks.
            text = json.dumps(self.header, ensure_ascii=False)
            header = orjson.dumps(json.loads(text.encode(errors="replace")))
        return _LENGTHS.pack(len(header), len(self.body)) + header


def send(connection: socket.socket, *frames: Frame) -> None:
    """Sends frames and waits until they are sent."""
    unsent = bytearray()
    for frame in frames:
        unsent += frame.head()
        if len(frame.body) <= _SENT_AT_ONCE:
            unsent += frame.body
        else:
            connection.sendall(unsent)
            connection.sendall(frame.body)
            unsent.clear()
    connection.sendall(unsent)


def receive(stream: BinaryIO) -> Frame | None:
    """Waits for a frame; returns None if the other side has disconnected."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_size, body_size = _LENGTHS.unpack(lengths)
    header, body = stream.read(header_size), stream.read(body_size)
    if len(body) < body_size:
        return None
    return Frame(orjson.loads(header), body)


async def receive_async(reader: asyncio.StreamReader) -> Frame:
    """Waits for a frame."""
    header_size, body_size = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
    # Reads both at once.
    rest = await reader.readexactly(header_size + body_size)
    return Frame(orjson.loads(rest[:header_size]), rest[header_size:])
