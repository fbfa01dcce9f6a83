"""Plots of predictions and training, on Matplotlib axes."""

from tfbbb.scores.plots.bands import intervals, predictive_band
from tfbbb.scores.plots.calibration import (
    calibration_curve,
    pit_histogram,
    reliability_diagram,
)
from tfbbb.scores.plots.curves import elbo_curve, risk_coverage

__all__ = [
    "calibration_curve",
    "elbo_curve",
    "intervals",
    "pit_histogram",
    "predictive_band",
    "reliability_diagram",
    "risk_coverage",
]
