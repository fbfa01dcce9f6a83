"""Explanations of a model by its predictions of a table."""

from tfbbb.judging.explain.effects import Effect, effect
from tfbbb.judging.explain.explanation import Explanation, explain
from tfbbb.judging.explain.importance import Importance, permutation_importance
from tfbbb.judging.explain.unusual_rows import UnusualRow, least_like_training
from tfbbb.judging.explain.variance_split import VarianceSplit, variance_split

__all__ = [
    "Effect",
    "Explanation",
    "Importance",
    "UnusualRow",
    "VarianceSplit",
    "effect",
    "explain",
    "least_like_training",
    "permutation_importance",
    "variance_split",
]
