"""Variational families q(w), resolvable by string name."""

import inspect
from typing import Any

from tfbbb.bayes.posteriors.full_covariance_normal import FullCovarianceNormal
from tfbbb.bayes.posteriors.joint_normal import JointNormal
from tfbbb.bayes.posteriors.low_rank_normal import LowRankNormal
from tfbbb.bayes.posteriors.matrix_normal import MatrixNormal
from tfbbb.bayes.posteriors.mean_field_normal import MeanFieldNormal
from tfbbb.bayes.posteriors.point import Point
from tfbbb.bayes.posteriors.posterior import (
    NormalPosterior,
    Posterior,
    register,
    registry,
)
from tfbbb.bayes.posteriors.tfp_distribution import TFPDistribution

names, make = registry.names, registry.make
serialize, deserialize = registry.serialize, registry.deserialize


def get(identifier: Any) -> Any:
    """Resolves a string name, a config from `serialize` or a `Posterior`.

    A class of `tfp.distributions`, or a function that makes a distribution, becomes
    `TFPDistribution(identifier)`.
    """
    if hasattr(identifier, "reparameterization_type") and not inspect.isclass(
        identifier
    ):
        raise ValueError(
            "The parameters of this distribution are fixed, but the parameters of a "
            "posterior are trained: pass its class, e.g. `tfp.distributions.Laplace`, "
            "or a function of its parameters that returns it. "
            f"Received: posterior={identifier!r}"
        )
    is_family = inspect.isclass(identifier) and issubclass(identifier, Posterior)
    if callable(identifier) and not is_family:
        return TFPDistribution(identifier)
    return registry.get(identifier)


__all__ = [
    "FullCovarianceNormal",
    "JointNormal",
    "LowRankNormal",
    "MatrixNormal",
    "MeanFieldNormal",
    "NormalPosterior",
    "Point",
    "Posterior",
    "TFPDistribution",
    "deserialize",
    "get",
    "make",
    "names",
    "register",
    "registry",
    "serialize",
]
