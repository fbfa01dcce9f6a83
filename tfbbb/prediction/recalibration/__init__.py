"""Recalibration of predictions on held-out rows, resolvable by string name."""

from typing import TYPE_CHECKING, Any

from tfbbb.base.lazy import import_keras, lazy_name

if TYPE_CHECKING:
    from tfbbb.prediction.recalibration.choice import Choice, choose
    from tfbbb.prediction.recalibration.conformal import (
        ConformalIntervals,
        ConformalSets,
    )
    from tfbbb.prediction.recalibration.factors import Temperature, VarianceScaling
    from tfbbb.prediction.recalibration.fitting import (
        deserialize,
        get,
        names,
        recalibrate,
        serialize,
    )
    from tfbbb.prediction.recalibration.isotonic_pit import IsotonicPIT
    from tfbbb.prediction.recalibration.logit_scaling import Platt, VectorScaling
    from tfbbb.prediction.recalibration.recalibration import Recalibration

__all__ = [
    "Choice",
    "ConformalIntervals",
    "ConformalSets",
    "IsotonicPIT",
    "Platt",
    "Recalibration",
    "Temperature",
    "VarianceScaling",
    "VectorScaling",
    "choose",
    "deserialize",
    "get",
    "names",
    "recalibrate",
    "serialize",
]

# A loaded SavedModel has a recalibration too, in a process without Keras.
_MODULES = {
    "Choice": ".choice",
    "ConformalIntervals": ".conformal",
    "ConformalSets": ".conformal",
    "IsotonicPIT": ".isotonic_pit",
    "Platt": ".logit_scaling",
    "Recalibration": ".recalibration",
    "Temperature": ".factors",
    "VarianceScaling": ".factors",
    "VectorScaling": ".logit_scaling",
    "choose": ".choice",
    "deserialize": ".fitting",
    "get": ".fitting",
    "names": ".fitting",
    "recalibrate": ".fitting",
    "serialize": ".fitting",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        import_keras()
    return lazy_name(__name__, _MODULES, name)


def __dir__() -> list[str]:
    return __all__
