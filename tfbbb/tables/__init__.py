"""Tables: reading, schema, preprocessing, held-out rows, samples."""

from typing import TYPE_CHECKING, Any

from tfbbb.base.lazy import lazy_name

if TYPE_CHECKING:
    from tfbbb.tables import samples
    from tfbbb.tables.column import Column
    from tfbbb.tables.features import preprocessing
    from tfbbb.tables.scan import TableScan, read_table
    from tfbbb.tables.schema import Schema
    from tfbbb.tables.splitting import split
    from tfbbb.tables.table_error import TableError

__all__ = [
    "Column",
    "Schema",
    "TableError",
    "TableScan",
    "preprocessing",
    "read_table",
    "samples",
    "split",
]

# Lazy imports: reading a table must not import Keras, and checking a spec must not
# import Arrow.
_MODULES = {
    "Column": ".column",
    "Schema": ".schema",
    "TableError": ".table_error",
    "TableScan": ".scan",
    "preprocessing": ".features",
    "read_table": ".scan",
    "samples": ".samples",
    "split": ".splitting",
}


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _MODULES, name)


def __dir__() -> list[str]:
    return __all__
