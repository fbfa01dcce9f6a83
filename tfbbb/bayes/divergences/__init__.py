"""KL divergences of posteriors from priors; each module registers its families."""

from tfbbb.bayes.divergences import (  # noqa: F401  (they register what they define)
    from_correlated_normal,
    from_marginals,
    from_posterior,
    mean_field_from_normal,
    of_points,
    through_tfp,
)
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
