"""The error of a table that can't be used."""


class TableError(ValueError):
    """A table can't be read, or doesn't hold what a model needs.

    The message is one sentence that names the file, column or row. Rows are
    counted from 1, without the header.
    """
