"""A table in several files of the same columns, in one directory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from tfbbb.tables.column_names import list_names
from tfbbb.tables.format import Format
from tfbbb.tables.table_error import StartOver, TableError
from tfbbb.tables.values import are_texts

_UNTYPED = ("csv", "tsv", "jsonl", "xlsx", "ods")


class Part(Protocol):
    """One file of a table."""

    path: Path
    format: Format

    def header(self) -> list[str]:
        """Returns the names of the columns at the beginning."""

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows, as `PartsFile.batches`."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows; types fit all of them."""

    def place(self, row: int) -> str:
        """Returns where a row is, such as "line 17"."""


# Opens a file; columns of these names are text.
OpenPart = Callable[[Path, Iterable[str]], Part]


class PartsFile:
    """The files of a directory, one after the other in the order of their names.

    Every file must have the columns of the first, in any order. The type of a column
    fits all files: whole numbers and numbers are numbers, and a column that is text in
    the first file is text in those that do not state types.

    Attributes:
        num_rows: Number of rows of each file, after a whole pass.
    """

    def __init__(self, directory: Path, open_part: OpenPart) -> None:
        self._open = open_part
        paths = sorted(p for p in directory.iterdir() if p.name[0] != ".")
        if not paths:
            raise TableError(f"{directory} has no files.")
        self._parts = [open_part(path, ()) for path in paths]
        self._texts: list[set[str]] = [set() for _ in paths]
        # The common types, by the rows read so far.
        self._schema: pa.Schema | None = None
        self.num_rows: tuple[int, ...] = ()

    def header(self) -> list[str]:
        """Returns the names of the columns of the first file."""
        return self._parts[0].header()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows in batches."""
        counts: list[int] = []
        yielded = False
        for index, part in enumerate(self._parts):
            counts.append(0)
            for batch in part.read():
                if self._widen(index, batch.schema) and yielded:
                    raise StartOver
                assert self._schema is not None
                counts[-1] += batch.num_rows
                yielded = True
                columns = [
                    batch.column(field.name).cast(field.type) for field in self._schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=self._schema)
            if not counts[-1]:
                raise TableError(f"{part.path} has a header but no rows.")
        self.num_rows = tuple(counts)

    def _widen(self, index: int, schema: pa.Schema) -> bool:
        """Widens the common types to those of a batch; returns whether they changed."""
        if self._schema is None:
            self._schema = schema.remove_metadata()
            return False
        part, first = self._parts[index], self._parts[0]
        names = self._schema.names
        for name in names:
            if name not in schema.names:
                raise TableError(
                    f"{part.path}, {part.place(-1)}: every file needs the columns of "
                    f"{first.path}, but this one has no column {name!r}. Received: "
                    f"{list_names(schema.names)}"
                )
        for name in schema.names:
            if name not in names:
                raise TableError(
                    f"{part.path}, {part.place(-1)}: every file needs the columns of "
                    f"{first.path}, which has no column {name!r}; it has "
                    f"{list_names(names)}."
                )
        fields = [
            self._common(index, field, schema.field(field.name))
            for field in self._schema
        ]
        changed = [field.type for field in fields] != self._schema.types
        self._schema = pa.schema(fields)
        return changed

    def _common(self, index: int, known: pa.Field, new: pa.Field) -> pa.Field:
        """Returns a column with a type for the rows so far and for new rows."""
        if known.type == new.type:
            return known
        pair = [pa.schema([pa.field(f.name, f.type)]) for f in (known, new)]
        try:
            unified = pa.unify_schemas(pair, promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid):
            part, texts = self._parts[index], self._texts[index]
            untyped = part.format.partition(".")[0] in _UNTYPED
            if are_texts(known.type) and untyped and known.name not in texts:
                texts.add(known.name)
                self._parts[index] = self._open(part.path, texts)
                raise StartOver from None
            raise self._conflict(index, known, new) from None
        return unified.field(0)

    def _conflict(self, index: int, known: pa.Field, new: pa.Field) -> TableError:
        part, first = self._parts[index], self._parts[0]
        row, value = _first_misfit(part.batches(), known)
        return TableError(
            f"{part.path}, {part.place(row)}: the column {known.name!r} has values of "
            f"type {_kind(known.type)} in {first.path}, but of type {_kind(new.type)} "
            f"in this file; correct the cell, or convert the column. Received: "
            f"{value!r:.100}"
        )


def _first_misfit(
    batches: Iterator[pa.RecordBatch], known: pa.Field
) -> tuple[int, object]:
    """Returns index and value of the first row that a type cannot hold."""
    number, first = 0, None
    for batch in batches:
        values: Sequence[object] = batch.column(known.name).to_pylist()
        for row, value in enumerate(values, start=number):
            if value is None:
                continue
            first = first or (row, value)
            try:
                pa.array([value]).cast(known.type)
            except (pa.ArrowException, ValueError):
                return row, value
        number += len(values)
    # Every value could be converted, but the file states another type.
    return first or (0, None)


def _kind(type_: pa.DataType) -> str:
    if are_texts(type_):
        return "text"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return "number"
    return str(type_)
