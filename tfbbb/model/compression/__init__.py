"""Pruning by signal-to-noise (Blundell et al. 2015)."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.model.compression.pruning import prune, share_removed
from tfbbb.model.layer_posterior import signal_to_noise

__all__ = ["prune", "share_removed", "signal_to_noise"]
