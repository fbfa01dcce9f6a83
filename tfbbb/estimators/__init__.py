"""How the noise of q(w) reaches a layer's output in training, by string name."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.estimators.auto import Auto
from tfbbb.estimators.estimator import Estimator
from tfbbb.estimators.flipout import Flipout
from tfbbb.estimators.local import Local
from tfbbb.estimators.score_function import ScoreFunction
from tfbbb.estimators.weight import Weight
from tfbbb.strategy import Registry

_registry = Registry(
    "estimator", Estimator, [Auto, Flipout, Local, ScoreFunction, Weight]
)
names, get, make, serialize, deserialize = (
    _registry.names,
    _registry.get,
    _registry.make,
    _registry.serialize,
    _registry.deserialize,
)

__all__ = [
    "Auto",
    "Estimator",
    "Flipout",
    "Local",
    "ScoreFunction",
    "Weight",
    "deserialize",
    "get",
    "make",
    "names",
    "serialize",
]
