"""A loaded model, which this process computes, or a child that has TensorFlow."""

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from service.shared.errors import Unavailable
from tfbbb.base import tensorflow_startup
from tfbbb.export.exported_model import ExportedModel
from tfbbb.export.manifest import Manifest

P = ParamSpec("P")
R = TypeVar("R")

_SECONDS_TO_END = 1.0


class ChildProcess:
    """A process that runs functions, started by a call; its end fails one call."""

    def __init__(self, name: str, niceness: int = 0) -> None:
        self._name = name
        self._niceness = niceness
        self._executor: ProcessPoolExecutor | None = None
        self._changing = threading.Lock()

    @property
    def is_running(self) -> bool:
        """Whether a call has started the process."""
        return self._executor is not None

    def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs a function in the process, and waits for its result."""
        executor = self._running()
        try:
            return executor.submit(function, *args, **kwargs).result()
        except BrokenProcessPool:
            with self._changing:
                if self._executor is executor:
                    self._executor = None
            raise Unavailable(
                f"{self._name} ended during the request and is started anew; retry in "
                "a few seconds."
            ) from None

    def close(self) -> None:
        """Ends the process; waits for a function that runs, but not for long.

        Python removes the semaphores of a pool when it is shut down, and otherwise
        warns about them when this process has ended.
        """
        with self._changing:
            executor, self._executor = self._executor, None
        if executor is not None:
            ending = threading.Thread(
                target=executor.shutdown, kwargs={"cancel_futures": True}, daemon=True
            )
            ending.start()
            ending.join(_SECONDS_TO_END)

    def _running(self) -> ProcessPoolExecutor:
        with self._changing:
            if self._executor is None:
                self._executor = ProcessPoolExecutor(
                    1,
                    # TensorFlow hangs in a process that was forked.
                    mp_context=multiprocessing.get_context("spawn"),
                    initializer=_initialize,
                    initargs=(self._niceness,),
                )
            return self._executor


def _initialize(niceness: int) -> None:
    os.nice(niceness)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(0)


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
