"""Variational families q(w), resolvable by string name."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.posteriors.mean_field_normal import MeanFieldNormal
from tfbbb.posteriors.posterior import Posterior
from tfbbb.strategy import Registry

_registry = Registry("posterior", Posterior, [MeanFieldNormal])
get, serialize, deserialize = (
    _registry.get,
    _registry.serialize,
    _registry.deserialize,
)

__all__ = ["MeanFieldNormal", "Posterior", "deserialize", "get", "serialize"]
