"""Parts of the report of a version, which `service/web/report_parts.js` shows.

`tfbbb.training.trained_table` makes the report; `docs/service.md` shows the fields.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfbbb.base.sampling_band import sampling_band
from tfbbb.base.types import Config
from tfbbb.judging.explain.rows import sampled
from tfbbb.judging.types import Prediction
from tfbbb.prediction.target_scores import ReliabilityDiagram, in_intervals

FORMAT = 1
MOST_ROWS = 500
_MOST_PROBABILITIES = 20_000
_CALIBRATION_ROWS = 2000
_CALIBRATION_LEVELS = tuple(float(level) for level in np.arange(1, 20) / 20)
_BINS = 10
_CONFIDENCE = 0.95
_INTERVALS = (0.5, 0.9)
_DIGITS = 7


def calibration(
    prediction: Prediction, targets: np.ndarray, generator: np.random.Generator
) -> Config:
    """Returns the coverage of intervals by level, or of classes reliability bins."""
    rows = sampled(len(targets), _CALIBRATION_ROWS, generator)
    if len(rows) < len(targets):
        prediction, targets = prediction.take(rows), targets[rows]
    scored: Any = prediction
    if hasattr(prediction, "probabilities"):
        diagram = ReliabilityDiagram.of(scored, targets, _BINS)
        expected = np.minimum(diagram.confidence, 1.0)
        return {
            "rows": len(rows),
            "edges": diagram.edges.tolist(),
            "counts": diagram.counts.tolist(),
            "confidence": diagram.confidence.tolist(),
            "accuracy": diagram.accuracy.tolist(),
            **_band(diagram.counts, expected),
        }
    held = in_intervals(scored, targets, _CALIBRATION_LEVELS)
    coverage = np.mean(held, axis=(0, 2))
    return {
        "rows": len(rows),
        "levels": list(_CALIBRATION_LEVELS),
        "coverage": coverage.tolist(),
        **_band(np.full(len(coverage), len(rows)), np.array(_CALIBRATION_LEVELS)),
    }


def _band(counts: np.ndarray, expected: np.ndarray) -> Config:
    """Returns the shares of a calibrated model, up to chance; NaN of no row."""
    ends = [np.full(len(counts), np.nan) for _ in range(2)]
    filled = counts > 0
    found = sampling_band(counts[filled], expected[filled], _CONFIDENCE)
    for values, end in zip(ends, found, strict=True):
        values[filled] = end / counts[filled]
    return {"lower": ends[0].tolist(), "upper": ends[1].tolist()}


def held_out(
    prediction: Prediction,
    targets: np.ndarray,
    places: np.ndarray,
    classes: Sequence[str],
    generator: np.random.Generator,
) -> Config:
    """Returns the predictions of at most 500 rows beside their targets."""
    most = min(MOST_ROWS, _MOST_PROBABILITIES // max(len(classes), 1))
    rows = sampled(len(targets), most, generator)
    if len(rows) < len(targets):
        prediction, targets = prediction.take(rows), targets[rows]
    found: Config = {"rows": len(places), "row": (places[rows] + 1).tolist()}
    if classes:
        return found | {
            "target": [classes[index] for index in targets],
            "probabilities": np.asarray(prediction.probabilities).tolist(),
        }
    lower, upper = prediction.interval(_INTERVALS)
    if targets.shape[1] > 1 and getattr(prediction, "censored", False):
        found["event"] = targets[:, 1].tolist()
    return found | {
        "target": targets[:, 0].tolist(),
        "mean": np.asarray(prediction.mean)[:, 0].tolist(),
        "intervals": [
            {
                "level": level,
                "lower": lower[:, place, 0].tolist(),
                "upper": upper[:, place, 0].tolist(),
            }
            for place, level in enumerate(_INTERVALS)
        ],
    }


def rounded(value: Any) -> Any:
    """Returns JSON values with fewer digits, and None for what is not finite."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
    return value
