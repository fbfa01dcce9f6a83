"""Likelihoods p(y | f(x, w)), resolvable by string name."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.likelihoods.categorical import Categorical
from tfbbb.likelihoods.likelihood import Likelihood
from tfbbb.likelihoods.normal import Normal
from tfbbb.strategy import Registry

_registry = Registry("likelihood", Likelihood, [Categorical, Normal])
get, serialize, deserialize = (
    _registry.get,
    _registry.serialize,
    _registry.deserialize,
)

__all__ = ["Categorical", "Likelihood", "Normal", "deserialize", "get", "serialize"]
