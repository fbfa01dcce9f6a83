"""Ways to a posterior for linear and small dense models."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.lab.inference.cavi import CAVI
from tfbbb.lab.inference.ep import (
    EPResult,
    ExpectationPropagation,
    expectation_propagation,
)
from tfbbb.lab.inference.pbp import PBP
from tfbbb.lab.inference.svi import SVI

__all__ = [
    "CAVI",
    "PBP",
    "SVI",
    "EPResult",
    "ExpectationPropagation",
    "expectation_propagation",
]
