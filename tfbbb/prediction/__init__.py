"""The posterior predictive distribution: how it is computed, and what it answers."""

from typing import TYPE_CHECKING, Any

from tfbbb.base.lazy import import_keras, lazy_name

if TYPE_CHECKING:
    from tfbbb.prediction.posterior_predictive import PredictiveOptions, predictive
    from tfbbb.prediction.result import Predictive

__all__ = ["Predictive", "PredictiveOptions", "predictive"]

# A loaded SavedModel returns a `Predictive` too, in a process without Keras.
_MODULES = {
    "Predictive": ".result",
    "PredictiveOptions": ".posterior_predictive",
    "predictive": ".posterior_predictive",
}


def __getattr__(name: str) -> Any:
    if name in ("PredictiveOptions", "predictive"):
        import_keras()
    return lazy_name(__name__, _MODULES, name)


def __dir__() -> list[str]:
    return __all__
