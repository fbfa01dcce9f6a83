"""The posterior predictive distribution: how it is computed, and what it answers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfbbb.prediction.posterior_predictive import PredictiveOptions, predictive
    from tfbbb.prediction.result import Predictive

__all__ = ["Predictive", "PredictiveOptions", "predictive"]

# A loaded SavedModel returns a `Predictive` too, in a process without Keras.
_MODULES = {
    "Predictive": "tfbbb.prediction.result",
    "PredictiveOptions": "tfbbb.prediction.posterior_predictive",
    "predictive": "tfbbb.prediction.posterior_predictive",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name != "Predictive":
        # Refuses other backends of Keras, before it is imported.
        import_module("tfbbb.base.backend")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
