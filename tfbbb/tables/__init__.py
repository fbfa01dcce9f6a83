"""Tables: reading, schema, preprocessing, held-out rows, samples."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "Column": "tfbbb.tables.column",
    "Schema": "tfbbb.tables.schema",
    "TableError": "tfbbb.tables.table_error",
    "TableScan": "tfbbb.tables.scan",
    "preprocessing": "tfbbb.tables.features",
    "read_table": "tfbbb.tables.scan",
    "split": "tfbbb.tables.splitting",
}


def __getattr__(name: str) -> Any:
    if name == "samples":
        return import_module("tfbbb.tables.samples")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
