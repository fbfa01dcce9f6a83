"""Judgement of a model: its figures beside those of baselines, in plain sentences."""

from tfbbb.judging.evaluation.baseline import Baseline
from tfbbb.judging.evaluation.baselines import Baselines
from tfbbb.judging.evaluation.evaluate import evaluate
from tfbbb.judging.evaluation.input_encoding import InputEncoding
from tfbbb.judging.evaluation.judgement import judge
from tfbbb.judging.evaluation.predicted_rows import PredictedRows

__all__ = [
    "Baseline",
    "Baselines",
    "InputEncoding",
    "PredictedRows",
    "evaluate",
    "judge",
]
