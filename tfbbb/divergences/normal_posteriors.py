"""The normal posteriors, whose entropies have closed forms."""

from typing import Any

from tfbbb import posteriors
from tfbbb.variational_weight import VariationalWeight

NORMAL_POSTERIORS = (
    posteriors.FullCovarianceNormal,
    posteriors.LowRankNormal,
    posteriors.MatrixNormal,
    posteriors.MeanFieldNormal,
)


def entropy_of(weight: VariationalWeight) -> Any:
    """Returns E[-log q(w)] in nats, [members]."""
    return weight.posterior.entropy(weight.parameters, weight.shape)
