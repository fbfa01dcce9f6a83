"""Bayesian neural-network layers for Keras 3, trained with plain `model.fit`.

The public names load on first use: `import tfbbb` alone imports neither TensorFlow
nor Keras, so that command-line help and service start-up stay quick.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from tfbbb.version import __version__ as __version__

if TYPE_CHECKING:
    from tfbbb.conversion import convert, to_deterministic
    from tfbbb.export import load
    from tfbbb.model import BayesianModel
    from tfbbb.model_average import ModelAverage, average
    from tfbbb.prediction import Predictive, predictive
    from tfbbb.recalibration import recalibrate
    from tfbbb.tuning import tune

_SUBPACKAGES = frozenset(
    {
        "acquisition",
        "bandits",
        "callbacks",
        "client",
        "compat",
        "compression",
        "data",
        "distributed",
        "divergences",
        "estimators",
        "evaluation",
        "evidence",
        "executor",
        "explain",
        "export",
        "families",
        "inference",
        "kl_schedules",
        "layers",
        "likelihoods",
        "losses",
        "metrics",
        "optimizers",
        "plots",
        "posteriors",
        "prediction",
        "priors",
        "recalibration",
        "sklearn",
        "training",
        "tuning",
    }
)
_HOMES = {
    "BayesianModel": "tfbbb.model",
    "ModelAverage": "tfbbb.model_average",
    "average": "tfbbb.model_average",
    "convert": "tfbbb.conversion",
    "to_deterministic": "tfbbb.conversion",
    "load": "tfbbb.export",
    "Predictive": "tfbbb.prediction",
    "predictive": "tfbbb.prediction",
    "recalibrate": "tfbbb.recalibration",
    "tune": "tfbbb.tuning",
}

__all__ = [
    "BayesianModel",
    "ModelAverage",
    "Predictive",
    "average",
    "convert",
    "load",
    "predictive",
    "recalibrate",
    "to_deterministic",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"tfbbb.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    special = (name for name in globals() if name.startswith("__"))
    return sorted({*special, *_SUBPACKAGES, *_HOMES})


if sys.modules.get("keras") is not None:
    # A program that has imported Keras may load a saved model next, for which Keras
    # must know our classes.
    importlib.import_module("tfbbb.model_average")
