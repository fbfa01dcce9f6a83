"""Recalibration of predictions on held-out rows, resolvable by string name."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.prediction.recalibration.choice import Choice, choose
from tfbbb.prediction.recalibration.conformal import ConformalIntervals, ConformalSets
from tfbbb.prediction.recalibration.factors import Temperature, VarianceScaling
from tfbbb.prediction.recalibration.fitting import (
    deserialize,
    get,
    names,
    recalibrate,
    serialize,
)
from tfbbb.prediction.recalibration.isotonic_pit import IsotonicPIT
from tfbbb.prediction.recalibration.recalibration import Recalibration

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
