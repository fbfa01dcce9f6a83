"""Scores of predictive distributions: functions of a prediction, and Keras metrics.

Each function takes a `tfbbb.Predictive` (or the prediction of a loaded export) and the
targets in raw units, and returns the mean score over rows. With `per_row=True`, scores
that are defined for single rows return an array of them. Each class is the same score
for `model.compile(metrics=[...])`, and so is `PredictiveMetric("crps")`.
Curves and histograms are frozen dataclasses of arrays, for `tfbbb.plots` or any other
plotting.
"""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.prediction.survival_scores import concordance, integrated_brier_score
from tfbbb.prediction.target_scores import ReliabilityDiagram
from tfbbb.scores.metrics.calibration import (
    CalibrationCurve,
    PITHistogram,
    calibration_curve,
    calibration_error,
    expected_calibration_error,
    pit_histogram,
    pit_values,
    reliability_diagram,
)
from tfbbb.scores.metrics.keras_metrics import (
    CRPS,
    BrierScore,
    CalibrationError,
    ExpectedCalibrationError,
    IntervalCoverage,
    IntervalWidth,
    NegativeLogLikelihood,
    PredictiveMetric,
    RootMeanSquaredError,
)
from tfbbb.scores.metrics.ranking import (
    RiskCoverageCurve,
    out_of_distribution_aupr,
    out_of_distribution_auroc,
    risk_coverage_curve,
)
from tfbbb.scores.metrics.row_scores import (
    brier_score,
    crps,
    interval_coverage,
    interval_width,
    negative_log_likelihood,
    root_mean_squared_error,
)

__all__ = [
    "CRPS",
    "BrierScore",
    "CalibrationCurve",
    "CalibrationError",
    "ExpectedCalibrationError",
    "IntervalCoverage",
    "IntervalWidth",
    "NegativeLogLikelihood",
    "PITHistogram",
    "PredictiveMetric",
    "ReliabilityDiagram",
    "RiskCoverageCurve",
    "RootMeanSquaredError",
    "brier_score",
    "calibration_curve",
    "calibration_error",
    "concordance",
    "crps",
    "expected_calibration_error",
    "integrated_brier_score",
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
