"""Tables: reading, schema, preprocessing, held-out rows, samples."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfbbb.data import samples
    from tfbbb.data.column import Column
    from tfbbb.data.features import preprocessing
    from tfbbb.data.reading import read_table
    from tfbbb.data.scan import TableScan
    from tfbbb.data.schema import Schema
    from tfbbb.data.splitting import split
    from tfbbb.data.table_error import TableError

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
    "Column": "tfbbb.data.column",
    "Schema": "tfbbb.data.schema",
    "TableError": "tfbbb.data.table_error",
    "TableScan": "tfbbb.data.scan",
    "preprocessing": "tfbbb.data.features",
    "read_table": "tfbbb.data.reading",
    "split": "tfbbb.data.splitting",
}


def __getattr__(name: str) -> Any:
    if name == "samples":
        return import_module("tfbbb.data.samples")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
