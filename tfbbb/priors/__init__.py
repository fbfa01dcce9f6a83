"""Prior families p(w), resolvable by string name."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.priors.normal import Normal
from tfbbb.priors.prior import Prior
from tfbbb.priors.scale_mixture_normal import ScaleMixtureNormal
from tfbbb.strategy import Registry

_registry = Registry("prior", Prior, [Normal, ScaleMixtureNormal])
get, serialize, deserialize = (
    _registry.get,
    _registry.serialize,
    _registry.deserialize,
)

__all__ = ["Normal", "Prior", "ScaleMixtureNormal", "deserialize", "get", "serialize"]
