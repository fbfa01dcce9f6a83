"""The error of a table that can't be used."""


class TableError(ValueError):
    """A table can't be read, or doesn't hold what a model needs.

    The message is one sentence that names the file, column or row. Rows are
    counted from 1, without the header.
    """


class ColumnError(TableError):
    """A column can't be a feature as it is, though the table may serve without it.

    Attributes:
        column: Name of the column.
        may_be_text: Whether it could be taken as text instead.
    """

    def __init__(self, message: str, column: str, *, may_be_text: bool = False):
        super().__init__(message)
        self.column = column
        self.may_be_text = may_be_text
