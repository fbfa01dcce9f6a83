"""Training on a table: from a declarative spec to a model and its metrics."""

from typing import TYPE_CHECKING, Any

from tfbbb.base.lazy import lazy_name

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
    "JobSpec": ".spec",
    "ModelSpec": ".spec",
    "SpecError": ".spec",
    "TrainedTable": ".trained_table",
    "TrainingDivergedError": "tfbbb.base.diverged_training",
    "TrainingSpec": ".spec",
    "train_table": ".table",
}


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _MODULES, name)


def __dir__() -> list[str]:
    return __all__
