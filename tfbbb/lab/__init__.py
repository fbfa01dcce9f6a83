"""Experimental methods, for teaching and for linear models.

They work and are tested. Their names and arguments may change in any release. Neither
the kit nor the tables import them.

The modules load on first use.
"""

from typing import Any

from tfbbb.base.lazy import lazy_name

_MODULES = {
    name: f".{name}" for name in ("acquisition", "compat", "evidence", "inference")
}


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _MODULES, name)


def __dir__() -> list[str]:
    special = (name for name in globals() if name.startswith("__"))
    return sorted({*special, *_MODULES})
