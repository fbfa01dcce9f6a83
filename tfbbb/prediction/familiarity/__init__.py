"""How much a row is like the rows that a model was trained on."""

from tfbbb.prediction.familiarity.familiarity import Familiarity, in_parts

__all__ = ["Familiarity", "in_parts"]
