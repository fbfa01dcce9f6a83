"""The columns of a table as a model reads them, with the cells that it cannot read."""

from collections.abc import Iterable

import numpy as np

from tfbbb.tables.column import Column
from tfbbb.tables.column_names import check_columns_exist
from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.table_error import TableError


class ReadColumns(dict[str, np.ndarray]):
    """The values of columns by name, as `Column.values` returns them.

    Attributes:
        unreadable: For each column the rows, counted from 0, with a cell that counts as
            missing because it cannot be read, and what is wrong with the cell.
    """

    def __init__(
        self,
        values: dict[str, np.ndarray],
        unreadable: dict[str, list[tuple[int, str]]] | None = None,
    ):
        super().__init__(values)
        self.unreadable = unreadable or {}

    @classmethod
    def read(cls, columns: Iterable[Column], table: ColumnSource) -> "ReadColumns":
        """Reads columns of a table.

        A cell that is not in the notation of its column counts as missing.

        Example:
        >>> import pyarrow as pa
        >>> size = Column("size", "numeric")
        >>> read = ReadColumns.read([size], pa.table({"size": ["1.5", "big"]}))
        >>> read["size"]
        array([1.5, nan], dtype=float32)
        >>> read.unreadable["size"]
        [(1, "Column 'size' has 'big', which is no number")]
        """
        values: dict[str, np.ndarray] = {}
        unreadable, errors = {}, []
        columns = list(columns)
        check_columns_exist(table, (x.name for x in columns), role="feature")
        for column in columns:
            try:
                parsed = column.parse(table)
            except TableError as error:
                errors.append(str(error))
                continue
            values[column.name] = parsed.inputs(column.dtype)
            if parsed.unreadable is not None:
                cells = column.cells(table)
                unreadable[column.name] = [
                    (int(row), _describe(column, cells.values[int(row)].as_py()))
                    for row in np.flatnonzero(parsed.unreadable)
                ]
        if errors:
            raise TableError(" ".join(errors))
        return cls(values, unreadable)

    def without_unseen_levels(self, columns: Iterable[Column]) -> "ReadColumns":
        """Returns the columns whose unreadable cells are no levels of ordered columns.

        Such a cell is a category that the training rows did not have.
        """
        ordered = {column.name for column in columns if column.meaning == "ordered"}
        others = {
            name: rows for name, rows in self.unreadable.items() if name not in ordered
        }
        return ReadColumns(self, others)

    def describe_unreadable(self) -> str:
        """Returns a sentence on the first unreadable cell of each column.

        Example:
        >>> faults = [(2, "Column 'size' has 'big', which is no number"), (4, "...")]
        >>> ReadColumns({}, {"size": faults}).describe_unreadable()
        "Column 'size' has 'big', which is no number, in row 3, and 1 more such cell."
        """
        sentences = []
        for (row, fault), *others in self.unreadable.values():
            more = ""
            if others:
                cells = "cell" if len(others) == 1 else "cells"
                more = f", and {len(others)} more such {cells}"
            sentences.append(f"{fault}, in row {row + 1}{more}.")
        return " ".join(sentences)


def _describe(column: Column, value: object) -> str:
    what = f"no {column.meaning}"
    if isinstance(value, float):
        what = "infinite in single precision"
    if column.meaning == "ordered":
        what = "none of its ordered texts"
    return f"Column {column.name!r} has {value!r}, which is {what}"
