"""The evidence of models: exact, bounded or estimated, and tables to choose by it."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.lab.evidence.annealed_importance_sampling import annealed_importance_sampling
from tfbbb.lab.evidence.comparison import (
    Comparison,
    ModelEvidence,
    compare,
)
from tfbbb.lab.evidence.elbo import elbo
from tfbbb.lab.evidence.estimate import EvidenceEstimate
from tfbbb.lab.evidence.importance_weighted_bound import importance_weighted_bound
from tfbbb.lab.evidence.linear import linear_log_evidence
from tfbbb.model.stacking import stacking_weights

__all__ = [
    "Comparison",
    "EvidenceEstimate",
    "ModelEvidence",
    "annealed_importance_sampling",
    "compare",
    "elbo",
    "importance_weighted_bound",
    "linear_log_evidence",
    "stacking_weights",
]
