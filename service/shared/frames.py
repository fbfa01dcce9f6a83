"""The protocol between the API and a process that reads the rows of a file.

A frame is two lengths, a JSON header and a body of raw bytes.
"""

import asyncio
import json
import struct
from dataclasses import dataclass
from typing import BinaryIO

import orjson

from service.shared.json_types import JsonObject

_LENGTHS = struct.Struct("!IQ")


@dataclass(frozen=True)
class Frame:
    """A request or a response.

    Args:
        header: What the body is, and what is asked about it.
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
