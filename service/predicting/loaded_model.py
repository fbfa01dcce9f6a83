"""A loaded model, which this process computes, or a child that has TensorFlow."""

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


class LoadedModel:
    """A model that functions can be applied to, in a child if it needs TensorFlow."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._here: ExportedModel | None = None
        if reason := Manifest.read(path).needs_tensorflow:
            tensorflow_startup.require_tensorflow(f"{reason} The model")
            self.manifest = _tensorflow.run(_load_there, path)
            return
        from tfbbb.export.reader import load

        self._here = load(path)
        self.manifest = self._here.manifest

    def run(self, function: Callable[..., R], *args: Any) -> R:
        """Returns the result of a function of the model and further arguments."""
        if self._here is None:
            return _tensorflow.run(_run_there, self._path, function, *args)
        return function(self._here, *args)

    def unload(self) -> None:
        """Frees what another process holds of the model."""
        if self._here is None and _tensorflow.is_running:
            _tensorflow.run(_unload_there, self._path)


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
