"""Errors of tables that cannot be used."""

from collections.abc import Sequence


class TableError(ValueError):
    """A table cannot be read or used; rows are counted from 1, below the header."""


class NoRowsError(TableError):
    """A file has a header but no rows."""

    def __init__(self, path: object):
        super().__init__(f"{path} has a header but no rows.")


class ColumnError(TableError):
    """A column cannot be a feature; the table may be usable without the column."""

    def __init__(
        self,
        message: str,
        column: str,
        *,
        unusable: bool = False,
        others: Sequence[str] = (),
    ):
        super().__init__(message)
        self.column = column
        self.unusable = unusable
        self.others = tuple(others)
