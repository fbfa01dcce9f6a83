"""Judgement of a model: its figures beside those of baselines, in plain sentences."""

from tfbbb.judging.evaluation.baselines import Baselines
from tfbbb.judging.evaluation.evaluate import evaluate
from tfbbb.judging.evaluation.judgement import judge

__all__ = ["Baselines", "evaluate", "judge"]
