"""The evidence of models: exact, bounded, or as a description length."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.lab.evidence.description_length import (
    DescriptionLength,
    description_length,
    elbo,
)
from tfbbb.lab.evidence.estimate import EvidenceEstimate
from tfbbb.lab.evidence.importance_weighted_bound import importance_weighted_bound
from tfbbb.lab.evidence.linear import linear_log_evidence

__all__ = [
    "DescriptionLength",
    "EvidenceEstimate",
    "description_length",
    "elbo",
    "importance_weighted_bound",
    "linear_log_evidence",
]
