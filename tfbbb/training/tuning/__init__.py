"""Search for a spec that predicts better than the default, by held-out rows."""

from tfbbb.training.tuning.search import StudyError, TunedTable, tune

__all__ = ["StudyError", "TunedTable", "tune"]
