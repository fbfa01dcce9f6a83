"""Plots of evidence and of pruning, on Matplotlib axes."""

from tfbbb.lab.plots.evidence import evidence_curve
from tfbbb.lab.plots.pruning import pruning_curve

__all__ = ["evidence_curve", "pruning_curve"]
