"""Keras callbacks that watch or steer the training of variational layers."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.model.callbacks.posterior_monitor import PosteriorMonitor

__all__ = ["PosteriorMonitor"]
