"""TensorFlow, Keras and NumPy, imported when one of their names is first used.

Specs, the command line and the API read the families of `tfbbb.bayes`: their names,
arguments and properties. Modules with families take the libraries from here, so that
none of those waits for TensorFlow.
"""

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tfbbb.base.tensorflow_startup import require_tensorflow

# What `import_keras` still has to call; None once Keras is imported.
_waiting: list[Callable[[], object]] | None = []


class _Lazy(ModuleType):
    def __getattr__(self, name: str) -> Any:
        # Inspection asks every object for such names.
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__.startswith("keras"):
            import_keras()
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import ops
else:
    keras, np, ops, tf = map(_Lazy, ("keras", "numpy", "keras.ops", "tensorflow"))


def when_keras_is_loaded(action: Callable[[], object]) -> None:
    """Calls a function as soon as `import_keras` has imported Keras: now, or later."""
    if _waiting is None:
        action()
    else:
        _waiting.append(action)


def import_keras() -> None:
    """Imports Keras with its TensorFlow backend, then calls what waits for it.

    SavedModels and TensorFlow Probability allow no other backend.
    """
    global _waiting
    if _waiting is None:
        return
    # Asked before Keras is imported: the import may fail without the other backend.
    requested = os.environ.get("KERAS_BACKEND") or "tensorflow"
    if "keras" not in sys.modules and requested != "tensorflow":
        _refuse(requested)
    backend = importlib.import_module("keras").backend.backend()
    if backend != "tensorflow":
        _refuse(backend)
    actions, _waiting = _waiting, None
    for action in actions:
        action()


def lazy_name(package: str, places: Mapping[str, str], name: str) -> Any:
    """Returns a name of a package that loads its names on first use.

    `places` has the module of each name, or what the name itself is; one that begins
    with a dot is relative to the package.
    """
    place = places.get(name)
    if place is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(place, package)
    except ModuleNotFoundError:
        require_tensorflow(f"{package}.{name}")
        raise
    return module if place.endswith(f".{name}") else getattr(module, name)


def _refuse(backend: str) -> None:
    raise ImportError(
        "tfbbb runs on the TensorFlow backend of Keras only. Set the environment "
        'variable KERAS_BACKEND="tensorflow" before Keras is imported. '
        f"Received: backend={backend!r}"
    )


__all__ = [
    "import_keras",
    "keras",
    "lazy_name",
    "np",
    "ops",
    "tf",
    "when_keras_is_loaded",
]
