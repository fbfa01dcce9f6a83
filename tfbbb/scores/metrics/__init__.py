"""Scores of predictive distributions: functions of a prediction, and Keras metrics.

Each function takes a `tfbbb.Predictive` (or the prediction of a loaded export) and the
targets in raw units, and returns the mean score over rows. With `per_row=True`, scores
that are defined for single rows return an array of them. Each class is the same score
for `model.compile(metrics=[...])`. Curves and histograms are frozen dataclasses of
arrays, for `tfbbb.plots` or any other plotting.
"""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.prediction.reliability import ReliabilityDiagram
from tfbbb.scores.metrics.brier_score import BrierScore, brier_score
from tfbbb.scores.metrics.calibration_error import (
    CalibrationCurve,
    CalibrationError,
    calibration_curve,
    calibration_error,
)
from tfbbb.scores.metrics.crps import CRPS, crps
from tfbbb.scores.metrics.expected_calibration_error import (
    ExpectedCalibrationError,
    expected_calibration_error,
    reliability_diagram,
)
from tfbbb.scores.metrics.interval_coverage import IntervalCoverage, interval_coverage
from tfbbb.scores.metrics.interval_width import IntervalWidth, interval_width
from tfbbb.scores.metrics.mean_score import MeanScore
from tfbbb.scores.metrics.negative_log_likelihood import (
    NegativeLogLikelihood,
    negative_log_likelihood,
)
from tfbbb.scores.metrics.out_of_distribution import (
    OutOfDistributionAUPR,
    OutOfDistributionAUROC,
    out_of_distribution_aupr,
    out_of_distribution_auroc,
)
from tfbbb.scores.metrics.pit import (
    PITHistogram,
    pit_histogram,
    pit_values,
)
from tfbbb.scores.metrics.predictive_metric import PredictiveMetric
from tfbbb.scores.metrics.risk_coverage import (
    AreaUnderRiskCoverage,
    RiskCoverageCurve,
    area_under_risk_coverage,
    risk_coverage_curve,
)
from tfbbb.scores.metrics.root_mean_squared_error import (
    RootMeanSquaredError,
    root_mean_squared_error,
)

__all__ = [
    "CRPS",
    "AreaUnderRiskCoverage",
    "BrierScore",
    "CalibrationCurve",
    "CalibrationError",
    "ExpectedCalibrationError",
    "IntervalCoverage",
    "IntervalWidth",
    "MeanScore",
    "NegativeLogLikelihood",
    "OutOfDistributionAUPR",
    "OutOfDistributionAUROC",
    "PITHistogram",
    "PredictiveMetric",
    "ReliabilityDiagram",
    "RiskCoverageCurve",
    "RootMeanSquaredError",
    "area_under_risk_coverage",
    "brier_score",
    "calibration_curve",
    "calibration_error",
    "crps",
    "expected_calibration_error",
    "interval_coverage",
    "interval_width",
    "negative_log_likelihood",
    "out_of_distribution_aupr",
    "out_of_distribution_auroc",
    "pit_histogram",
    "pit_values",
    "reliability_diagram",
    "risk_coverage_curve",
    "root_mean_squared_error",
]
