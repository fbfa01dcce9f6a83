"""Pruning by signal-to-noise (Blundell et al. 2015)."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.bayes.signal_to_noise import signal_to_noise
from tfbbb.model.compression.pruning import prune, share_removed

__all__ = ["prune", "share_removed", "signal_to_noise"]
