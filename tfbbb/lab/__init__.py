"""Experimental methods, for teaching and for linear models.

They work and are tested. Their names and arguments may change in any release. Neither
the kit nor the tables import them.

The modules load on first use.
"""

import importlib
from typing import Any

_MODULES = frozenset({"acquisition", "compat", "evidence", "inference"})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    special = (name for name in globals() if name.startswith("__"))
    return sorted({*special, *_MODULES})
