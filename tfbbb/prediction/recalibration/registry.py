"""Recalibrations by string name."""

from tfbbb.base.strategy import Registry
from tfbbb.prediction.recalibration.conformal_intervals import ConformalIntervals
from tfbbb.prediction.recalibration.conformal_sets import ConformalSets
from tfbbb.prediction.recalibration.isotonic_pit import IsotonicPIT
from tfbbb.prediction.recalibration.recalibration import Recalibration
from tfbbb.prediction.recalibration.temperature import Temperature
from tfbbb.prediction.recalibration.variance_scaling import VarianceScaling

_registry = Registry(
    Recalibration,
    {
        "conformal_intervals": ConformalIntervals,
        "conformal_sets": ConformalSets,
        "isotonic_pit": IsotonicPIT,
        "temperature": Temperature,
        "variance_scaling": VarianceScaling,
    },
)
names, get, serialize, deserialize = (
    _registry.names,
    _registry.get,
    _registry.serialize,
    _registry.deserialize,
)
