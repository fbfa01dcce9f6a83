"""Ways to a posterior: each sets q of a model and returns a `BayesianModel`.

The names load on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfbbb.inference.cavi import CAVI
    from tfbbb.inference.ep import (
        EPResult,
        ExpectationPropagation,
        expectation_propagation,
    )
    from tfbbb.inference.pbp import PBP
    from tfbbb.inference.svi import SVI

_HOMES = {
    "CAVI": "cavi",
    "EPResult": "ep",
    "ExpectationPropagation": "ep",
    "PBP": "pbp",
    "SVI": "svi",
    "expectation_propagation": "ep",
}

__all__ = [
    "CAVI",
    "PBP",
    "SVI",
    "EPResult",
    "ExpectationPropagation",
    "expectation_propagation",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
