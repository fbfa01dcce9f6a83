"""Reads JSON lines block by block, as columns of text."""

import contextlib
import itertools
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

# No line may be longer.
BLOCK_BYTES = 4 * 2**20
CELLS_PER_BATCH = 2**16
# In a hostile file each line has other keys: most cells, or the share that has values.
_MOST_CELLS, _LEAST_FILLED = 2**26, 0.001

_Row: TypeAlias = dict[str, Any]


class JsonFile:
    """A file of JSON lines as record batches of texts: one object per line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def names(self) -> list[str]:
        """The keys of all lines."""
        names, num_rows, filled = dict[str, None](), 0, 0
        for row in self._rows():
            names |= dict.fromkeys(row)
            num_rows, filled = num_rows + 1, filled + len(row)
        if _MOST_CELLS < num_rows * len(names) > filled / _LEAST_FILLED:
            raise TableError(
                f"{self._path} has {len(names)} different keys, most of them missing "
                "in most lines; write the same keys in each line."
            )
        return [*names]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in batches."""
        names, rows = self.names, self._rows()
        size = max(1, CELLS_PER_BATCH // max(1, len(names)))
        while some := [*itertools.islice(rows, size)]:
            columns = [_texts([row.get(name) for row in some]) for name in names]
            batch = pa.RecordBatch.from_arrays(columns, names)
            yield batch.replace_schema_metadata(WITHOUT_TYPES)

    def _rows(self) -> Iterator[_Row]:
        """Yields the objects of the lines that are not blank."""
        with self._path.open("rb") as file:
            for number in itertools.count(1):
                line = file.readline(BLOCK_BYTES + 1)
                if len(line) > BLOCK_BYTES:
                    raise TableError(
                        f"{self._path}: line {number} is longer than {BLOCK_BYTES} "
                        "bytes; write one object per line."
                    )
                if not line:
                    return
                if line := line.strip():
                    yield _parse(self._path, number, line)


def _parse(path: Path, number: int, line: bytes) -> _Row:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        row = _parse_line(f"{path}: line {number}", line)
    if not isinstance(row, dict):
        raise TableError(
            f"{path}: line {number} is not a JSON object; write one object per line, "
            f'such as {{"age": 36}}. Received: {line[:40].decode()!r}'
        )
    if b"[" in line or line.count(b"{") > 1:
        for name, value in row.items():
            if isinstance(value, dict | list):
                raise TableError(
                    f"{path}: line {number} has an object or an array at the key "
                    f"{name!r}, but must have a number, a text, a boolean or null; "
                    "write its parts as keys of their own, or leave the key out."
                )
    return row


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
