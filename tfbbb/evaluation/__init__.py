"""Judgement of a model: its figures beside those of baselines, in plain sentences."""

from tfbbb.evaluation.baseline import Baseline
from tfbbb.evaluation.baselines import Baselines
from tfbbb.evaluation.evaluate import evaluate
from tfbbb.evaluation.input_encoding import InputEncoding
from tfbbb.evaluation.judgement import judge
from tfbbb.evaluation.predicted_rows import PredictedRows

__all__ = [
    "Baseline",
    "Baselines",
    "InputEncoding",
    "PredictedRows",
    "evaluate",
    "judge",
]
