"""Pictures of predictions, posteriors and training, on Matplotlib axes."""

from tfbbb.plots.elbo_curve import elbo_curve
from tfbbb.plots.intervals import intervals
from tfbbb.plots.predictive_band import predictive_band
from tfbbb.plots.pruning_curve import pruning_curve
from tfbbb.plots.signal_to_noise import signal_to_noise

__all__ = [
    "elbo_curve",
    "intervals",
    "predictive_band",
    "pruning_curve",
    "signal_to_noise",
]
