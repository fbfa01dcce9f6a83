"""Ways to a posterior: each sets q of a model and returns a `BayesianModel`.

The names load on first use.
"""

from typing import TYPE_CHECKING, Any

from tfbbb.base.lazy import lazy_name

if TYPE_CHECKING:
    from tfbbb.inference.gradient_training import (
        MAP,
        DeepEnsemble,
        MaximumLikelihood,
        MCDropout,
    )
    from tfbbb.inference.ivon import IVON
    from tfbbb.inference.laplace import Laplace
    from tfbbb.inference.nuts import NUTS
    from tfbbb.inference.stochastic_gradient_mcmc import SGHMC, SGLD
    from tfbbb.inference.swag import SWAG

_HOMES = {
    "DeepEnsemble": ".gradient_training",
    "IVON": ".ivon",
    "Laplace": ".laplace",
    "MAP": ".gradient_training",
    "MCDropout": ".gradient_training",
    "MaximumLikelihood": ".gradient_training",
    "NUTS": ".nuts",
    "SGHMC": ".stochastic_gradient_mcmc",
    "SGLD": ".stochastic_gradient_mcmc",
    "SWAG": ".swag",
}

__all__ = [
    "IVON",
    "MAP",
    "NUTS",
    "SGHMC",
    "SGLD",
    "SWAG",
    "DeepEnsemble",
    "Laplace",
    "MCDropout",
    "MaximumLikelihood",
]


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _HOMES, name)
