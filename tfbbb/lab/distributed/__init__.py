"""Training on rows in partitions, in this process or on the machines of a Ray cluster.

The names load on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfbbb.lab.distributed.partitioned_vi import PartitionedVI
    from tfbbb.lab.distributed.rows import split_rows

_HOMES = {"PartitionedVI": "partitioned_vi", "split_rows": "rows"}

__all__ = ["PartitionedVI", "split_rows"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
