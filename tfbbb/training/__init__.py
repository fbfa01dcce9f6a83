"""Training on a table: from a declarative spec to a model and its metrics."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfbbb.base.tensorflow_startup import require_tensorflow

if TYPE_CHECKING:
    from tfbbb.base.diverged_training import TrainingDivergedError
    from tfbbb.training.spec import JobSpec, ModelSpec, SpecError, TrainingSpec
    from tfbbb.training.table import train_table
    from tfbbb.training.trained_table import TrainedTable

__all__ = [
    "JobSpec",
    "ModelSpec",
    "SpecError",
    "TrainedTable",
    "TrainingDivergedError",
    "TrainingSpec",
    "train_table",
]

# Lazy imports: specs must not import TensorFlow.
_MODULES = {
    "JobSpec": "tfbbb.training.spec",
    "ModelSpec": "tfbbb.training.spec",
    "SpecError": "tfbbb.training.spec",
    "TrainedTable": "tfbbb.training.trained_table",
    "TrainingDivergedError": "tfbbb.base.diverged_training",
    "TrainingSpec": "tfbbb.training.spec",
    "train_table": "tfbbb.training.table",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError:
        require_tensorflow(f"tfbbb.training.{name}")
        raise


def __dir__() -> list[str]:
    return __all__
