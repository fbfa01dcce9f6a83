"""Ways to a posterior: each sets q of a model and returns a `BayesianModel`.

The names load on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfbbb.inference.deep_ensemble import DeepEnsemble
    from tfbbb.inference.hmc import HMC
    from tfbbb.inference.ivon import IVON
    from tfbbb.inference.laplace import Laplace
    from tfbbb.inference.map import MAP
    from tfbbb.inference.maximum_likelihood import MaximumLikelihood
    from tfbbb.inference.mc_dropout import MCDropout
    from tfbbb.inference.nuts import NUTS
    from tfbbb.inference.sghmc import SGHMC
    from tfbbb.inference.sgld import SGLD
    from tfbbb.inference.swag import SWAG

_HOMES = {
    "DeepEnsemble": "deep_ensemble",
    "HMC": "hmc",
    "IVON": "ivon",
    "Laplace": "laplace",
    "MAP": "map",
    "MCDropout": "mc_dropout",
    "MaximumLikelihood": "maximum_likelihood",
    "NUTS": "nuts",
    "SGHMC": "sghmc",
    "SGLD": "sgld",
    "SWAG": "swag",
}

__all__ = [
    "HMC",
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
    if name in _HOMES:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
