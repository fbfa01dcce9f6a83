"""Explanations of a model by its predictions of a table."""

from tfbbb.judging.explain.effects import Effect
from tfbbb.judging.explain.explanation import Explanation, explain
from tfbbb.judging.explain.importance import Importance
from tfbbb.judging.explain.unusual_rows import UnusualRow
from tfbbb.judging.explain.variance_split import VarianceSplit

__all__ = [
    "Effect",
    "Explanation",
    "Importance",
    "UnusualRow",
    "VarianceSplit",
    "explain",
]
