"""Means and variances propagated through a network in closed form."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.prediction.moments import (  # noqa: F401  (they register what they define)
    activation_layers,
    deterministic_layers,
    graph_operations,
    max_pooling,
    mean_pooling,
    merging,
    normalization,
    rearrangement,
    variational_layers,
)
from tfbbb.prediction.moments.activations import register_activation
from tfbbb.prediction.moments.marginals import Marginals
from tfbbb.prediction.moments.output_moments import (
    operations,
    output_moments,
    prepared,
)
from tfbbb.prediction.moments.registry import (
    Call,
    MomentsError,
    register_moments,
)
from tfbbb.prediction.properties import Operation

__all__ = [
    "Call",
    "Marginals",
    "MomentsError",
    "Operation",
    "operations",
    "output_moments",
    "prepared",
    "register_activation",
    "register_moments",
]
