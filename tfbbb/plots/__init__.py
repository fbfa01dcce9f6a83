"""Pictures of predictions, on Matplotlib axes."""

from tfbbb.plots.intervals import intervals

__all__ = ["intervals"]
