"""Reads JSON lines block by block, as columns of text."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.json

from tfbbb.tables.plain_values import WITHOUT_TYPES
from tfbbb.tables.table_error import StartOver, TableError
from tfbbb.tables.values import cell_text

# No line may be longer than a block.
BLOCK_BYTES = 4 * 2**20
# Arrow's reader crashes on values that are nested some thousand times.
_MOST_BRACKETS = 500
# Most values of a block: in a hostile file each line has other keys.
_MOST_VALUES = 2**26
_INT64 = range(-(2**63), 2**63)

_Scalar: TypeAlias = bool | int | float | str | None
_Row = Mapping[str, _Scalar]


class JsonFile:
    """A file of JSON lines as record batches of texts: one object per line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # The types of the values of each column, in the blocks read so far.
        self._kinds: dict[str, set[type]] = {}

    def header(self) -> list[str]:
        """Returns the keys at the beginning of the file."""
        for number, block in self._blocks():
            return list(_find_kinds(self._parse(number, block)))
        return []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in batches."""
        is_first = True
        for number, block in self._blocks():
            table = self._read(number, block, is_first=is_first)
            is_first = False
            texts = table.cast(pa.schema((name, pa.string()) for name in self._kinds))
            yield from texts.replace_schema_metadata(WITHOUT_TYPES).to_batches()

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yields blocks of whole lines with the numbers of their first lines."""
        number, rest = 1, b""
        with self._path.open("rb") as file:
            while piece := file.read(BLOCK_BYTES):
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

    def _read(self, number: int, block: bytes, *, is_first: bool) -> pa.Table:
        if self._kinds and _may_be_flat(block):
            self._check_size(block.count(b"\n"))
            options = pa.json.ParseOptions(
                explicit_schema=self._schema(), unexpected_field_behavior="error"
            )
            size = pa.json.ReadOptions(block_size=len(block))
            try:
                # Arrow does not check the encoding of texts.
                block.decode()
                return pa.json.read_json(pa.BufferReader(block), size, options)
            except (pa.ArrowInvalid, UnicodeDecodeError):
                # New keys, other types or a fault: the rows show which.
                pass
        rows = self._parse(number, block)
        known = set(self._kinds)
        for name, kinds in _find_kinds(rows).items():
            self._kinds.setdefault(name, set()).update(kinds)
        if known != set(self._kinds) and not is_first:
            raise StartOver
        self._check_size(len(rows))
        columns = [_array(rows, field) for field in self._schema()]
        return pa.Table.from_arrays(columns, schema=self._schema())

    def _schema(self) -> pa.Schema:
        return pa.schema(
            (name, _column_type(kinds)) for name, kinds in self._kinds.items()
        )

    def _check_size(self, num_rows: int) -> None:
        if num_rows * len(self._kinds) > _MOST_VALUES:
            raise TableError(
                f"{self._path} has {len(self._kinds)} different keys, most of them "
                "missing in most lines; write the same keys in each line."
            )

    def _parse(self, first: int, block: bytes) -> list[_Row]:
        """Returns the objects of a block."""
        rows = []
        for number, line in enumerate(block.split(b"\n"), start=first):
            if line.strip():
                rows.append(self._parse_line(number, line))
        return rows

    def _parse_line(self, number: int, line: bytes) -> _Row:
        where = f"{self._path}: line {number}"
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            row = json.loads(text, object_pairs_hook=list, parse_int=_parse_integer)
        except UnicodeDecodeError:
            raise TableError(f"{where} is not UTF-8 text; save it as UTF-8.") from None
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "values are nested too deeply")
            raise TableError(
                f"{where} is not a JSON object: {reason}. Received: {text[:40]!r}"
            ) from None
        # An object is parsed to a list of pairs.
        if not (isinstance(row, list) and text.lstrip().startswith("{")):
            raise TableError(
                f"{where} is not a JSON object; write one object per line, such as "
                f'{{"age": 36}}. Received: {text[:40]!r}'
            )
        values = dict(row)
        if len(values) < len(row):
            names = [name for name, _ in row]
            twice = next(name for name in names if names.count(name) > 1)
            raise TableError(f"{where} has the key {twice!r} twice.")
        for name, value in row:
            if isinstance(value, list):
                raise TableError(
                    f"{where} has an object or an array at the key {name!r}, but must "
                    "have a number, a text, a boolean or null; write its parts as keys "
                    "of their own, or leave the key out."
                )
            _check_text(where, name, name)
            if isinstance(value, str):
                _check_text(where, name, value)
        return values


def _may_be_flat(block: bytes) -> bool:
    """Whether no value of a block is deeply nested."""
    brackets = block.count(b"[") + block.count(b"{") - block.count(b"\n")
    return brackets < _MOST_BRACKETS


def _check_text(where: str, key: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TableError(
            f"{where} has a half surrogate pair at the key {key!r}, which is no text."
        ) from None


def _parse_integer(digits: str) -> int | float:
    # Python refuses to parse thousands of digits.
    number = int(digits) if len(digits) <= 20 else None
    return number if number is not None and number in _INT64 else float(digits)


def _find_kinds(rows: Iterable[_Row]) -> dict[str, set[type]]:
    """Returns the types of the values of each key; None has none."""
    found: dict[str, set[type]] = {}
    for row in rows:
        for name, value in row.items():
            kinds = found.setdefault(name, set())
            if value is not None:
                kinds.add(type(value))
    return found


def _column_type(kinds: set[type]) -> pa.DataType:
    if not kinds:
        return pa.null()
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds <= {int, float} else pa.string()


def _array(rows: Iterable[_Row], field: pa.Field) -> pa.Array:
    values = [row.get(field.name) for row in rows]
    if pa.types.is_string(field.type):
        values = [None if value is None else cell_text(value) for value in values]
    elif pa.types.is_floating(field.type):
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, field.type)
