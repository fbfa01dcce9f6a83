"""How much a row is like the rows that a model was trained on."""

from tfbbb.prediction.familiarity.familiarity import Familiarity

__all__ = ["Familiarity"]
