"""Recalibration of predictions on held-out rows, resolvable by string name."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.recalibration.choice import Choice, choose
from tfbbb.recalibration.conformal_intervals import ConformalIntervals
from tfbbb.recalibration.conformal_sets import ConformalSets
from tfbbb.recalibration.fitting import recalibrate
from tfbbb.recalibration.isotonic_pit import IsotonicPIT
from tfbbb.recalibration.recalibration import Recalibration
from tfbbb.recalibration.registry import deserialize, get, names, serialize
from tfbbb.recalibration.temperature import Temperature
from tfbbb.recalibration.variance_scaling import VarianceScaling

__all__ = [
    "Choice",
    "ConformalIntervals",
    "ConformalSets",
    "IsotonicPIT",
    "Recalibration",
    "Temperature",
    "VarianceScaling",
    "choose",
    "deserialize",
    "get",
    "names",
    "recalibrate",
    "serialize",
]
