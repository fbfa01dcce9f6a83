"""Plots of predictions, posteriors and training, on Matplotlib axes."""

from tfbbb.scores.plots.calibration_curve import calibration_curve
from tfbbb.scores.plots.elbo_curve import elbo_curve
from tfbbb.scores.plots.intervals import intervals
from tfbbb.scores.plots.out_of_distribution import out_of_distribution
from tfbbb.scores.plots.pit_histogram import pit_histogram
from tfbbb.scores.plots.posterior_comparison import posterior_comparison
from tfbbb.scores.plots.posterior_contours import posterior_contours
from tfbbb.scores.plots.predictive_band import predictive_band
from tfbbb.scores.plots.reliability_diagram import reliability_diagram
from tfbbb.scores.plots.risk_coverage import risk_coverage
from tfbbb.scores.plots.signal_to_noise import signal_to_noise

__all__ = [
    "calibration_curve",
    "elbo_curve",
    "intervals",
    "out_of_distribution",
    "pit_histogram",
    "posterior_comparison",
    "posterior_contours",
    "predictive_band",
    "reliability_diagram",
    "risk_coverage",
    "signal_to_noise",
]
