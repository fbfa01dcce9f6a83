"""The base of metrics of intervals."""

from tfbbb.base.types import Config, DType
from tfbbb.prediction.levels import checked_level
from tfbbb.scores.metrics.mean_score import MeanScore


class IntervalMetric(MeanScore):
    """The mean over rows of a score of central intervals of one level.

    Args:
        level: Probability of the interval, strictly between 0 and 1.
        name: Name of the metric.
        dtype: Type of its state.
    """

    scored = "ordered"

    def __init__(
        self, level: float = 0.9, name: str | None = None, dtype: DType = None
    ):
        super().__init__(name=name, dtype=dtype)
        self.level = checked_level(level)

    def get_config(self) -> Config:
        return {**super().get_config(), "level": self.level}
