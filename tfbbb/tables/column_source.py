"""The interface of tables in memory and on disk."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa


@runtime_checkable
class ColumnSource(Protocol):
    """A table from which a schema is inferred: a `pyarrow.Table` or a `StoredTable`.

    Callers must hold one column at a time, so that a table on disk may be larger than
    memory.
    """

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    def column(self, name: str) -> "pa.ChunkedArray":
        """Returns the values of a column."""
