"""KL divergences of posteriors from priors; `closed_forms` registers ours."""

from tfbbb.bayes.divergences import closed_forms  # noqa: F401  (registers them)
from tfbbb.bayes.divergences.kl_divergence import (
    closed_form_of,
    is_log_ratio,
    kl_divergence,
    register_estimate,
    register_kl,
)

__all__ = [
    "closed_form_of",
    "is_log_ratio",
    "kl_divergence",
    "register_estimate",
    "register_kl",
]
