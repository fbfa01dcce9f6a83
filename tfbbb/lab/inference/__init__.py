"""Ways to a posterior for linear and small dense models.

The names load on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfbbb.lab.inference.cavi import CAVI
    from tfbbb.lab.inference.ep import (
        EPResult,
        ExpectationPropagation,
        expectation_propagation,
    )
    from tfbbb.lab.inference.jaakkola_jordan import (
        JaakkolaJordan,
        LocalBoundResult,
        local_bound,
    )
    from tfbbb.lab.inference.pbp import PBP
    from tfbbb.lab.inference.svi import SVI

_HOMES = {
    "CAVI": "cavi",
    "EPResult": "ep",
    "ExpectationPropagation": "ep",
    "JaakkolaJordan": "jaakkola_jordan",
    "LocalBoundResult": "jaakkola_jordan",
    "PBP": "pbp",
    "SVI": "svi",
    "expectation_propagation": "ep",
    "local_bound": "jaakkola_jordan",
}

__all__ = [
    "CAVI",
    "PBP",
    "SVI",
    "EPResult",
    "ExpectationPropagation",
    "JaakkolaJordan",
    "LocalBoundResult",
    "expectation_propagation",
    "local_bound",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
