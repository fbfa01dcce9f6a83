"""Models as files that answer with a predictive distribution: writing and reading."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "ExportedModel": "tfbbb.export.exported_model",
    "Manifest": "tfbbb.export.manifest",
    "load": "tfbbb.export.reader",
    "next_version": "tfbbb.export.versions",
    "write_mlflow": "tfbbb.export.mlflow_model",
    "write_onnx": "tfbbb.export.onnx_file",
    "write_saved_model": "tfbbb.export.writer",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
