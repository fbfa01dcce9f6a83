"""Agents that choose actions by a posterior and learn from the rewards."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.bandits.thompson_sampling import ThompsonSampling

__all__ = ["ThompsonSampling"]
