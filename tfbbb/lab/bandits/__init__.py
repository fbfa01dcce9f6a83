"""Agents that choose actions by a posterior and learn from the rewards."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.lab.bandits.thompson_sampling import ThompsonSampling

__all__ = ["ThompsonSampling"]
