"""Tables: reading, schema, preprocessing, held-out rows, samples."""

from typing import TYPE_CHECKING, Any

from tfbbb.data import samples
from tfbbb.data.column import Column
from tfbbb.data.reading import read_table
from tfbbb.data.schema import Schema
from tfbbb.data.splitting import split
from tfbbb.data.table_error import TableError

if TYPE_CHECKING:
    from tfbbb.data.features import preprocessing

__all__ = [
    "Column",
    "Schema",
    "TableError",
    "preprocessing",
    "read_table",
    "samples",
    "split",
]


def __getattr__(name: str) -> Any:
    # Keras is imported by what needs it only: reading tables doesn't.
    if name == "preprocessing":
        from tfbbb.data.features import preprocessing

        return preprocessing
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
