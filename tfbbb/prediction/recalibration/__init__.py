"""Recalibration of predictions on held-out rows, resolvable by string name."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.prediction.recalibration.choice import Choice, choose
from tfbbb.prediction.recalibration.conformal_intervals import ConformalIntervals
from tfbbb.prediction.recalibration.conformal_sets import ConformalSets
from tfbbb.prediction.recalibration.fitting import recalibrate
from tfbbb.prediction.recalibration.isotonic_pit import IsotonicPIT
from tfbbb.prediction.recalibration.recalibration import Recalibration
from tfbbb.prediction.recalibration.registry import (
    deserialize,
    get,
    names,
    serialize,
)
from tfbbb.prediction.recalibration.temperature import Temperature
from tfbbb.prediction.recalibration.variance_scaling import VarianceScaling

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
