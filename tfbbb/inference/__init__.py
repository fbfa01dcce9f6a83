"""Ways to a posterior: each sets q of a model and returns a `BayesianModel`.

The names load on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfbbb.inference.cavi import CAVI
    from tfbbb.inference.deep_ensemble import DeepEnsemble
    from tfbbb.inference.ep import (
        EPResult,
        ExpectationPropagation,
        expectation_propagation,
    )
    from tfbbb.inference.hmc import HMC
    from tfbbb.inference.ivon import IVON
    from tfbbb.inference.jaakkola_jordan import (
        JaakkolaJordan,
        LocalBoundResult,
        local_bound,
    )
    from tfbbb.inference.laplace import Laplace
    from tfbbb.inference.map import MAP
    from tfbbb.inference.maximum_likelihood import MaximumLikelihood
    from tfbbb.inference.mc_dropout import MCDropout
    from tfbbb.inference.nuts import NUTS
    from tfbbb.inference.parallel_tempering import ParallelTempering
    from tfbbb.inference.pbp import PBP
    from tfbbb.inference.sghmc import SGHMC
    from tfbbb.inference.sgld import SGLD
    from tfbbb.inference.svi import SVI
    from tfbbb.inference.swag import SWAG

_HOMES = {
    "CAVI": "cavi",
    "DeepEnsemble": "deep_ensemble",
    "EPResult": "ep",
    "ExpectationPropagation": "ep",
    "HMC": "hmc",
    "IVON": "ivon",
    "JaakkolaJordan": "jaakkola_jordan",
    "Laplace": "laplace",
    "LocalBoundResult": "jaakkola_jordan",
    "MAP": "map",
    "MCDropout": "mc_dropout",
    "MaximumLikelihood": "maximum_likelihood",
    "NUTS": "nuts",
    "PBP": "pbp",
    "ParallelTempering": "parallel_tempering",
    "SGHMC": "sghmc",
    "SGLD": "sgld",
    "SVI": "svi",
    "SWAG": "swag",
    "expectation_propagation": "ep",
    "local_bound": "jaakkola_jordan",
}

__all__ = [
    "CAVI",
    "HMC",
    "IVON",
    "MAP",
    "NUTS",
    "PBP",
    "SGHMC",
    "SGLD",
    "SVI",
    "SWAG",
    "DeepEnsemble",
    "EPResult",
    "ExpectationPropagation",
    "JaakkolaJordan",
    "Laplace",
    "LocalBoundResult",
    "MCDropout",
    "MaximumLikelihood",
    "ParallelTempering",
    "expectation_propagation",
    "local_bound",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
