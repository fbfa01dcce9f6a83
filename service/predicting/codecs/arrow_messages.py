"""Checks the messages of an Arrow stream before pyarrow reads their values.

A message is a table of FlatBuffers: the position of each field stands in a table of
16-bit offsets (https://flatbuffers.dev/internals). The fields are those of
`Message.fbs` in the Arrow format.
"""

import struct

import pyarrow as pa

from service.shared.errors import InvalidRequest

_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
# Of a dictionary batch, and of a record batch.
_DATA, _COMPRESSION = 1, 3


def check_messages(stream: pa.Buffer) -> None:
    """Refuses compressed batches, whose size in memory nothing bounds."""
    for message in pa.ipc.MessageReader.open_stream(stream):
        try:
            compressed = _is_compressed(message.metadata.to_pybytes())
        except struct.error:
            raise InvalidRequest(
                "A message of the Arrow stream is malformed."
            ) from None
        if compressed:
            raise InvalidRequest(
                "The batches of the Arrow stream must not be compressed; write them "
                "with `pyarrow.ipc.IpcWriteOptions(compression=None)`."
            )


def _is_compressed(message: bytes) -> bool:
    (root,) = struct.unpack_from("<I", message)
    place = _field(message, root, _HEADER_TYPE)
    kind = message[place] if place else 0
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return False
    batch = _table(message, root, _HEADER)
    if kind == _DICTIONARY_BATCH:
        batch = _table(message, batch, _DATA)
    return _field(message, batch, _COMPRESSION) != 0


def _field(message: bytes, table: int, index: int) -> int:
    """Returns the position of a field of a table; 0 if the table lacks the field."""
    (to_offsets,) = struct.unpack_from("<i", message, table)
    offsets = table - to_offsets
    (size,) = struct.unpack_from("<H", message, offsets)
    place = 4 + 2 * index
    if place >= size:
        return 0
    (offset,) = struct.unpack_from("<H", message, offsets + place)
    return table + offset if offset else 0


def _table(message: bytes, table: int, index: int) -> int:
    """Returns the position of the table that a field refers to."""
    place = _field(message, table, index)
    (offset,) = struct.unpack_from("<I", message, place)
    return place + int(offset)
