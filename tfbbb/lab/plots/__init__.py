"""Plots of evidence and of pruning, on Matplotlib axes."""

from tfbbb.lab.plots.evidence_curve import evidence_curve
from tfbbb.lab.plots.pruning_curve import pruning_curve

__all__ = ["evidence_curve", "pruning_curve"]
