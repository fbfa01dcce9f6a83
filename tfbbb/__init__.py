"""Bayesian neural-network layers for Keras 3, trained with plain `model.fit`.

The public names load on first use: `import tfbbb` alone imports neither TensorFlow
nor Keras, so that command-line help and service start-up stay quick.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from tfbbb.base.lazy import lazy_name
from tfbbb.version import __version__ as __version__

if TYPE_CHECKING:
    from tfbbb.export import load
    from tfbbb.model.bayesian_model import BayesianModel
    from tfbbb.model.conversion import convert, to_deterministic
    from tfbbb.model.diagnosis import diagnose
    from tfbbb.model.model_average import ModelAverage, average
    from tfbbb.prediction import Predictive, predictive
    from tfbbb.prediction.extrapolation import Extrapolation
    from tfbbb.prediction.familiarity import Familiarity
    from tfbbb.prediction.recalibration import recalibrate
    from tfbbb.training.tuning import tune

# The modules and folders that programs use by these names, and where they are.
MODULES = {
    "adapters": "tfbbb.model.adapters",
    "client": "tfbbb.client",
    "compression": "tfbbb.model.compression",
    "divergences": "tfbbb.bayes.divergences",
    "estimators": "tfbbb.bayes.estimators",
    "evaluation": "tfbbb.judging.evaluation",
    "explain": "tfbbb.judging.explain",
    "export": "tfbbb.export",
    "families": "tfbbb.bayes.families",
    "inference": "tfbbb.inference",
    "kl_schedules": "tfbbb.bayes.kl_schedules",
    "lab": "tfbbb.lab",
    "layers": "tfbbb.layers",
    "likelihoods": "tfbbb.bayes.likelihoods",
    "losses": "tfbbb.model.losses",
    "metrics": "tfbbb.scores.metrics",
    "optimizers": "tfbbb.model.optimizers",
    "plots": "tfbbb.scores.plots",
    "posteriors": "tfbbb.bayes.posteriors",
    "prediction": "tfbbb.prediction",
    "priors": "tfbbb.bayes.priors",
    "recalibration": "tfbbb.prediction.recalibration",
    "sklearn": "tfbbb.sklearn",
    "tables": "tfbbb.tables",
    "training": "tfbbb.training",
    "tuning": "tfbbb.training.tuning",
}
_HOMES = {
    "BayesianModel": "tfbbb.model.bayesian_model",
    "Extrapolation": "tfbbb.prediction.extrapolation",
    "Familiarity": "tfbbb.prediction.familiarity",
    "ModelAverage": "tfbbb.model.model_average",
    "average": "tfbbb.model.model_average",
    "convert": "tfbbb.model.conversion",
    "diagnose": "tfbbb.model.diagnosis",
    "to_deterministic": "tfbbb.model.conversion",
    "load": "tfbbb.export",
    "Predictive": "tfbbb.prediction",
    "predictive": "tfbbb.prediction",
    "recalibrate": "tfbbb.prediction.recalibration",
    "tune": "tfbbb.training.tuning",
}

__all__ = [
    "BayesianModel",
    "Extrapolation",
    "Familiarity",
    "ModelAverage",
    "Predictive",
    "average",
    "convert",
    "diagnose",
    "load",
    "predictive",
    "recalibrate",
    "to_deterministic",
    "tune",
]


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, MODULES | _HOMES, name)


def __dir__() -> list[str]:
    special = (name for name in globals() if name.startswith("__"))
    return sorted({*special, *MODULES, *_HOMES})


if sys.modules.get("keras") is not None:
    # A program that has imported Keras may load a saved model next, for which Keras
    # must know our classes.
    importlib.import_module("tfbbb.model.adapted")
    importlib.import_module("tfbbb.model.model_average")
