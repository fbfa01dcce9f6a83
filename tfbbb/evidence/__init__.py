"""The evidence of models: exact, bounded or estimated, and tables to choose by it."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.evidence.annealed_importance_sampling import annealed_importance_sampling
from tfbbb.evidence.comparison import Comparison, ModelEvidence, compare
from tfbbb.evidence.elbo import elbo
from tfbbb.evidence.estimate import EvidenceEstimate
from tfbbb.evidence.importance_weighted_bound import importance_weighted_bound
from tfbbb.evidence.linear import linear_log_evidence
from tfbbb.stacking import stacking_weights

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
