"""Models as files that answer with a predictive distribution: writing and reading."""

from typing import TYPE_CHECKING, Any

from tfbbb.base.lazy import lazy_name

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel
    from tfbbb.export.manifest import Manifest
    from tfbbb.export.mlflow_model import write_mlflow
    from tfbbb.export.onnx_file import write_onnx
    from tfbbb.export.reader import load
    from tfbbb.export.versions import next_version
    from tfbbb.export.writer import write_saved_model

__all__ = [
    "ExportedModel",
    "Manifest",
    "load",
    "next_version",
    "write_mlflow",
    "write_onnx",
    "write_saved_model",
]

# A manifest is read without TensorFlow and a SavedModel without Keras, so each
# name brings only its own module.
_MODULES = {
    "ExportedModel": ".exported_model",
    "Manifest": ".manifest",
    "load": ".reader",
    "next_version": ".versions",
    "write_mlflow": ".mlflow_model",
    "write_onnx": ".onnx_file",
    "write_saved_model": ".writer",
}


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _MODULES, name)


def __dir__() -> list[str]:
    return __all__
