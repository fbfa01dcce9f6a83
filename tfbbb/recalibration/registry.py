"""Recalibrations by string name."""

from tfbbb.recalibration.conformal_intervals import ConformalIntervals
from tfbbb.recalibration.conformal_sets import ConformalSets
from tfbbb.recalibration.isotonic_pit import IsotonicPIT
from tfbbb.recalibration.recalibration import Recalibration
from tfbbb.recalibration.temperature import Temperature
from tfbbb.recalibration.variance_scaling import VarianceScaling
from tfbbb.strategy import Registry

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
