"""Prior families p(w), resolvable by string name."""

import inspect
from typing import Any

from tfbbb.bayes.priors.empirical_normal import EmpiricalNormal
from tfbbb.bayes.priors.from_posterior import FromPosterior
from tfbbb.bayes.priors.gamma_normal import GammaNormal
from tfbbb.bayes.priors.horseshoe import Horseshoe
from tfbbb.bayes.priors.laplace import Laplace
from tfbbb.bayes.priors.normal import Normal
from tfbbb.bayes.priors.prior import Prior, ScaledPrior, register, registry
from tfbbb.bayes.priors.scale_mixture_normal import ScaleMixtureNormal
from tfbbb.bayes.priors.student_t import StudentT
from tfbbb.bayes.priors.tfp_distribution import TFPDistribution

names, make = registry.names, registry.make
serialize, deserialize = registry.serialize, registry.deserialize


def get(identifier: Any) -> Any:
    """Resolves a string name, a config from `serialize` or a `Prior`.

    A distribution of TensorFlow Probability, or a function that makes one, becomes
    `TFPDistribution(identifier)`. None stays None: the posterior `point` goes without.
    """
    if identifier is None:
        return None
    if identifier == "from_posterior":
        raise ValueError(
            "This prior needs a trained model: pass "
            f"`tfbbb.priors.FromPosterior(model)`. Received: prior={identifier!r}"
        )
    if inspect.isclass(identifier) and hasattr(identifier, "parameter_properties"):
        raise ValueError(
            "A class of distributions does not say which one is the prior. Pass a "
            "distribution, e.g. `tfp.distributions.Laplace(0.0, 1.0)`, or a function "
            f"`(shape, fan_in)` that returns one. Received: prior={identifier!r}"
        )
    is_distribution = hasattr(identifier, "event_shape") or callable(identifier)
    if is_distribution and not inspect.isclass(identifier):
        return TFPDistribution(identifier)
    return registry.get(identifier)


__all__ = [
    "EmpiricalNormal",
    "FromPosterior",
    "GammaNormal",
    "Horseshoe",
    "Laplace",
    "Normal",
    "Prior",
    "ScaleMixtureNormal",
    "ScaledPrior",
    "StudentT",
    "TFPDistribution",
    "deserialize",
    "get",
    "make",
    "names",
    "register",
    "registry",
    "serialize",
]
