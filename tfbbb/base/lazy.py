"""TensorFlow, Keras and NumPy, imported when one of their names is first used.

Specs, the command line and the API read the families of `tfbbb.bayes`: their names,
arguments and properties. Modules with families take the libraries from here, so that
none of those waits for TensorFlow.
"""

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

_waiting: list[Callable[[], object]] | None = []


class _Lazy(ModuleType):
    def __getattr__(self, name: str) -> Any:
        # Inspection asks every object for such names.
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__.startswith("keras"):
            importlib.import_module("tfbbb.base.backend")
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
    """Calls a function as soon as `tfbbb` has imported Keras: now, or later."""
    if _waiting is None:
        action()
    else:
        _waiting.append(action)


def keras_is_loaded() -> None:
    """Calls the functions that wait for Keras; `tfbbb.base.backend` imports it."""
    global _waiting
    actions, _waiting = _waiting or [], None
    for action in actions:
        action()


__all__ = ["keras", "keras_is_loaded", "np", "ops", "tf", "when_keras_is_loaded"]
