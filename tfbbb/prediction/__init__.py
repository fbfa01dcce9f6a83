"""The posterior predictive distribution: how it is computed, and what it answers."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.prediction.posterior_predictive import PredictiveOptions, predictive
from tfbbb.prediction.result import Predictive

__all__ = ["Predictive", "PredictiveOptions", "predictive"]
