"""Plots of predictions, posteriors and training, on Matplotlib axes."""

from tfbbb.plots.calibration_curve import calibration_curve
from tfbbb.plots.elbo_curve import elbo_curve
from tfbbb.plots.evidence_curve import evidence_curve
from tfbbb.plots.intervals import intervals
from tfbbb.plots.out_of_distribution import out_of_distribution
from tfbbb.plots.pit_histogram import pit_histogram
from tfbbb.plots.posterior_comparison import posterior_comparison
from tfbbb.plots.posterior_contours import posterior_contours
from tfbbb.plots.predictive_band import predictive_band
from tfbbb.plots.pruning_curve import pruning_curve
from tfbbb.plots.reliability_diagram import reliability_diagram
from tfbbb.plots.risk_coverage import risk_coverage
from tfbbb.plots.signal_to_noise import signal_to_noise

__all__ = [
    "calibration_curve",
    "elbo_curve",
    "evidence_curve",
    "intervals",
    "out_of_distribution",
    "pit_histogram",
    "posterior_comparison",
    "posterior_contours",
    "predictive_band",
    "pruning_curve",
    "reliability_diagram",
    "risk_coverage",
    "signal_to_noise",
]
