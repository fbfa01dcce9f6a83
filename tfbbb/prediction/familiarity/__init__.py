"""How much a row is like the rows that a model was trained on."""

from tfbbb.prediction.familiarity.extrapolation import Extrapolation
from tfbbb.prediction.familiarity.familiarity import Familiarity

__all__ = ["Extrapolation", "Familiarity"]
