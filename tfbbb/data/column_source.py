"""Where columns come from."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnSource(Protocol):
    """What a schema is inferred from: a `pyarrow.Table`, or a table on disk.

    Whoever reads one holds one column at a time, so that a table on disk may be larger
    than memory.
    """

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    def column(self, name: str) -> "pa.ChunkedArray":
        """Returns the values of a column."""
