"""Reads JSON lines block by block, as columns of text."""

import contextlib
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import pyarrow as pa

from tfbbb.tables.plain_values import WITHOUT_TYPES
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import cell_text

# No line may be longer than a block.
BLOCK_BYTES = 4 * 2**20
_PIECE_BYTES = 2**20
# Most values of a block: in a hostile file each line has other keys.
_MOST_VALUES = 2**26

_Row: TypeAlias = dict[str, Any]


class JsonFile:
    """A file of JSON lines as record batches of texts: one object per line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def names(self) -> list[str]:
        """The keys of all lines."""
        names = dict[str, None]()
        for number, block in self._blocks():
            for row in self._parse(number, block):
                names |= dict.fromkeys(row)
        return [*names]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in batches."""
        names = self.names
        for number, block in self._blocks():
            rows = self._parse(number, block)
            if len(rows) * len(names) > _MOST_VALUES:
                raise TableError(
                    f"{self._path} has {len(names)} different keys, most of them "
                    "missing in most lines; write the same keys in each line."
                )
            columns = [_texts([row.get(name) for row in rows]) for name in names]
            batch = pa.RecordBatch.from_arrays(columns, names)
            yield batch.replace_schema_metadata(WITHOUT_TYPES)

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yields blocks of whole lines with the numbers of their first lines."""
        number, rest = 1, b""
        with self._path.open("rb") as file:
            while piece := file.read(min(BLOCK_BYTES, _PIECE_BYTES)):
                rest += piece
                end = rest.rfind(b"\n") + 1
                if end:
                    yield number, rest[:end]
                    number += rest.count(b"\n", 0, end)
                    rest = rest[end:]
                if len(rest) > BLOCK_BYTES:
                    raise TableError(
                        f"{self._path}: line {number} is longer than {BLOCK_BYTES} "
                        "bytes; write one object per line."
                    )
        if rest.strip():
            yield number, rest

    def _parse(self, first: int, block: bytes) -> list[_Row]:
        """Returns the objects of a block."""
        rows: dict[str, _Row] = {}
        for number, line in enumerate(block.split(b"\n"), start=first):
            if not line.strip():
                continue
            where = f"{self._path}: line {number}"
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                row = _parse_line(where, line)
            if not isinstance(row, dict):
                raise TableError(
                    f"{where} is not a JSON object; write one object per line, such as "
                    f'{{"age": 36}}. Received: {line[:40].decode()!r}'
                )
            rows[where] = row
        if b"[" in block or block.count(b"{") > len(rows):
            _check_flat(rows)
        return [*rows.values()]


def _check_flat(rows: dict[str, _Row]) -> None:
    for where, row in rows.items():
        for name, value in row.items():
            if isinstance(value, dict | list):
                raise TableError(
                    f"{where} has an object or an array at the key {name!r}, but must "
                    "have a number, a text, a boolean or null; write its parts as keys "
                    "of their own, or leave the key out."
                )


def _parse_line(where: str, line: bytes) -> object:
    """Parses a line with NaN or a byte order mark; says what is wrong with another."""
    try:
        text = line.decode("utf-8-sig")
        found = json.loads(text)
        # A half of a surrogate pair is no text.
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise TableError(f"{where} is not UTF-8 text; save it as UTF-8.") from None
    except UnicodeEncodeError:
        message = f"{where} has half a surrogate pair, which is no text."
        raise TableError(message) from None
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "values are nested too deeply")
        raise TableError(
            f"{where} is not a JSON object: {reason}. Received: {text[:40]!r}"
        ) from None
    return found


def _texts(values: list[Any]) -> pa.Array:
    """Returns values as the texts that a CSV file would have."""
    types = {*map(type, values)} - {type(None)}
    if len(types) < 2 or types == {int, float}:
        # Some whole numbers are neither int64 nor float64 numbers.
        with contextlib.suppress(pa.ArrowInvalid, OverflowError):
            return pa.array(values).cast(pa.string())
    texts = (None if value is None else cell_text(value) for value in values)
    return pa.array(texts, pa.string())
