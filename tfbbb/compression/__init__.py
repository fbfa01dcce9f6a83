"""Pruning by signal-to-noise, smaller networks and description lengths."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.compression.compacting import compact
from tfbbb.compression.description_length import (
    DescriptionLength,
    DescriptionLengthCurve,
    description_length,
    description_length_curve,
)
from tfbbb.compression.gradual_pruning import GradualPruning
from tfbbb.compression.pruning import prune, share_removed
from tfbbb.compression.pruning_curve import PruningCurve, pruning_curve
from tfbbb.compression.ranking import DensityRatio, Ranking, SignalToNoise
from tfbbb.compression.signal_to_noise import signal_to_noise

__all__ = [
    "DensityRatio",
    "DescriptionLength",
    "DescriptionLengthCurve",
    "GradualPruning",
    "PruningCurve",
    "Ranking",
    "SignalToNoise",
    "compact",
    "description_length",
    "description_length_curve",
    "prune",
    "pruning_curve",
    "share_removed",
    "signal_to_noise",
]
