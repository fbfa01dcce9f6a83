"""Gradual pruning, smaller networks, pruning curves and description lengths."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.lab.compression.compacting import compact
from tfbbb.lab.compression.description_length import (
    DescriptionLength,
    DescriptionLengthCurve,
    description_length,
    description_length_curve,
)
from tfbbb.lab.compression.gradual_pruning import GradualPruning
from tfbbb.lab.compression.pruning_curve import PruningCurve, pruning_curve

__all__ = [
    "DescriptionLength",
    "DescriptionLengthCurve",
    "GradualPruning",
    "PruningCurve",
    "compact",
    "description_length",
    "description_length_curve",
    "pruning_curve",
]
