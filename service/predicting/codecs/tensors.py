"""Tensors of the Open Inference Protocol as NumPy arrays."""

import math
import struct
from collections.abc import Sequence
from itertools import chain

import numpy as np

from service.predicting.codecs.json_body import NotANumber
from service.predicting.nested import flattened
from service.shared.errors import InvalidRequest
from service.shared.json_types import JsonList
from tfbbb.base.texts import abbreviate

# Little-endian, as the protocol has it. Texts are arrays of objects.
DATATYPES = {
    "BOOL": np.dtype("?"),
    **{
        f"{kind}{8 * size}": np.dtype(f"<{kind[0].lower()}{size}")
        for kind in ("INT", "UINT")
        for size in (1, 2, 4, 8)
    },
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
    "BYTES": np.dtype(object),
}
DATATYPES_BY_DTYPE = {dtype: name for name, dtype in DATATYPES.items()}

_LENGTH = struct.Struct("<I")
# The types of JSON values that each kind of number may have.
_JSON_TYPES: dict[str, set[type]] = {
    "b": {bool},
    "i": {int},
    "u": {int},
    "f": {int, float, bool, type(None), NotANumber},
}


def decode(
    raw: memoryview, datatype: str, shape: Sequence[int], what: str
) -> np.ndarray:
    """Returns the tensor in raw bytes, which it shares where their address allows."""
    if datatype == "BYTES":
        return _decode_texts(raw, shape, what)
    dtype = DATATYPES[datatype]
    size = math.prod(shape) * dtype.itemsize
    if len(raw) != size:
        raise InvalidRequest(
            f"{what} of the shape {list(shape)} and the datatype {datatype} has {size} "
            f"bytes. Received: {len(raw)} bytes"
        )
    if datatype == "BOOL":
        # Any byte but 0 is true; an array of booleans must hold 0 and 1.
        flags: np.ndarray = np.frombuffer(raw, np.uint8) != 0
        return flags.reshape(shape)
    values: np.ndarray = np.frombuffer(raw, dtype).reshape(shape)
    return values if values.flags.aligned else values.copy()


def encode(values: np.ndarray) -> bytes:
    """Returns the raw bytes of a tensor."""
    if values.dtype.kind != "O":
        return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
    texts = [text.encode() for text in values.reshape(-1)]
    return b"".join(chain.from_iterable((_LENGTH.pack(len(t)), t) for t in texts))


def read_data(
    data: object, datatype: str, shape: Sequence[int], what: str
) -> np.ndarray:
    """Returns the tensor of `data` in JSON, nested or flat.

    Numbers with missing ones among them, and texts, are arrays of objects.
    """
    values = _flatten(data, shape, what)
    dtype = DATATYPES[datatype]
    types = set(map(type, values))
    allowed = _JSON_TYPES.get(dtype.kind, {str, type(None)})
    if not types <= allowed:
        wrong = next(value for value in values if type(value) not in allowed)
        raise InvalidRequest(
            f"{what} has the datatype {datatype}, but holds {abbreviate(wrong)}."
        )
    if dtype.kind == "O" or types & {type(None), NotANumber}:
        return np.array(values, dtype=object).reshape(shape)
    # Numbers too large for single precision must not become infinite here: the error
    # must quote them.
    exact = np.dtype(np.float64) if dtype.kind == "f" else dtype
    try:
        return np.array(values, dtype=exact).reshape(shape)
    except OverflowError:
        if dtype.kind == "f":
            return np.array(values, dtype=object).reshape(shape)
        raise InvalidRequest(
            f"{what} holds a number that is not in the range of {datatype}."
        ) from None


def _flatten(data: object, shape: Sequence[int], what: str) -> JsonList:
    if isinstance(data, list):
        is_flat = len(data) == math.prod(shape) and not isinstance(data[0], list)
        values = data if is_flat else flattened(data, shape)
        if values is not None:
            return values
    raise InvalidRequest(
        f"{what} must have `data` of the shape {list(shape)}, nested or flat. "
        f"Received: {abbreviate(data)}"
    )


def _decode_texts(raw: memoryview, shape: Sequence[int], what: str) -> np.ndarray:
    """Reads texts in UTF-8, each after its length in four bytes."""
    size = math.prod(shape)
    # Each text has at least the bytes of its length.
    if size * _LENGTH.size > len(raw):
        raise InvalidRequest(
            f"{what} of the shape {list(shape)} has {size} texts, each after its "
            f"length in {_LENGTH.size} bytes. Received: {len(raw)} bytes"
        )
    texts = np.empty(size, dtype=object)
    place = 0
    for row in range(size):
        begin = place + _LENGTH.size
        length = _LENGTH.unpack_from(raw, place)[0] if begin <= len(raw) else 0
        place = begin + length
        if place > len(raw):
            raise InvalidRequest(
                f"{what}: text {row + 1} ends beyond the {len(raw)} bytes of the "
                "tensor."
            )
        try:
            texts[row] = str(raw[begin:place], "utf-8")
        except UnicodeDecodeError:
            raise InvalidRequest(
                f"{what}: text {row + 1} is not UTF-8. "
                f"Received: {abbreviate(bytes(raw[begin:place][:100]))}"
            ) from None
    if place != len(raw):
        raise InvalidRequest(
            f"{what}: {len(raw) - place} bytes follow its {size} texts."
        )
    return texts.reshape(shape)
