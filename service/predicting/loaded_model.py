"""A loaded model, which this process computes, or a child that has TensorFlow."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from service.predicting.child_process import ChildProcess
from tfbbb.base import tensorflow_startup
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.manifest import Manifest

R = TypeVar("R")

_tensorflow = ChildProcess("The process that computes with TensorFlow")
# In that process: the models that it has loaded.
_there: dict[Path, ExportedModel] = {}


class LoadedModel(ABC):
    """A model that functions can be applied to.

    Attributes:
        manifest: The manifest of the model.
    """

    manifest: Manifest

    @abstractmethod
    def run(self, function: Callable[..., R], *args: Any) -> R:
        """Returns the result of a function of the model and further arguments."""

    @abstractmethod
    def unload(self) -> None:
        """Frees what another process holds of the model."""


class _Here(LoadedModel):
    def __init__(self, path: Path) -> None:
        from tfbbb.export.reader import load

        self._model = load(path)
        self.manifest = self._model.manifest

    def run(self, function: Callable[..., R], *args: Any) -> R:
        return function(self._model, *args)

    def unload(self) -> None:
        """Does nothing: the memory is freed with the last reference to the model."""


class _There(LoadedModel):
    def __init__(self, path: Path) -> None:
        self._path = path
        self.manifest = _tensorflow.run(_load_there, path)

    def run(self, function: Callable[..., R], *args: Any) -> R:
        return _tensorflow.run(_run_there, self._path, function, *args)

    def unload(self) -> None:
        if _tensorflow.is_running:
            _tensorflow.run(_unload_there, self._path)


def load_model(path: Path) -> LoadedModel:
    """Loads a model, in a child process if it needs TensorFlow."""
    if reason := Manifest.read(path).needs_tensorflow:
        tensorflow_startup.require_tensorflow(f"{reason} The model")
        return _There(path)
    return _Here(path)


def close() -> None:
    """Ends the child process, if there is one."""
    _tensorflow.close()


def _load_there(path: Path) -> Manifest:
    from tfbbb.export.reader import load

    tensorflow_startup.import_tensorflow()
    _there[path] = load(path)
    return _there[path].manifest


def _run_there(path: Path, function: Callable[..., R], *args: Any) -> R:
    if path not in _there:  # The process that had loaded it has ended.
        _load_there(path)
    return function(_there[path], *args)


def _unload_there(path: Path) -> None:
    _there.pop(path, None)
