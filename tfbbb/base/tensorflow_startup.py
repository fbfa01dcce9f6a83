"""Imports TensorFlow, which then logs fatal errors only.

The distribution `tfbbb-predict` comes without TensorFlow: what needs it says so.
"""

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tfbbb.base.garbage_collection import rare_garbage_collection


class MissingTensorFlowError(ImportError):
    """What was asked for needs TensorFlow; the message says how to get it."""


def has_tensorflow() -> bool:
    """Returns whether TensorFlow is installed, without importing it."""
    return importlib.util.find_spec("tensorflow") is not None


def require_tensorflow(what: str) -> None:
    """Raises an error unless TensorFlow is installed."""
    if not has_tensorflow():
        raise MissingTensorFlowError(
            f"{what} needs TensorFlow: `pip install tfbbb`, or take the full image in "
            "place of the one that only predicts."
        )


def import_tensorflow() -> None:
    """Imports TensorFlow and lists the devices.

    TensorFlow takes the memory of GPUs as it needs it, and Keras does not import
    Matplotlib with it. If the environment variable `TF_CPP_MIN_LOG_LEVEL` is not set,
    it becomes 3: TensorFlow logs fatal errors only. A few lines about the processor
    stay, which TensorFlow writes before it reads the variable.
    """
    if sys.modules.get("tensorflow") is not None:
        return
    require_tensorflow("This")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _without_matplotlib(), rare_garbage_collection():
        import tensorflow as tf

    let_gpu_memory_grow()
    # TensorFlow looks for a GPU when it lists the devices for the first time.
    tf.config.list_logical_devices()


def let_gpu_memory_grow() -> None:
    """Makes TensorFlow take the memory of a GPU bit by bit, not all of it at once.

    Otherwise the first process, such as one that predicts, would leave none to the
    others, such as one that trains. Must be called before TensorFlow uses a device.
    """
    import tensorflow as tf

    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)


@contextmanager
def _without_matplotlib() -> Iterator[None]:
    """Keeps Keras from importing Matplotlib, which takes a second.

    Keras does without it, unless it draws, which no command and no service makes it do.
    """
    name = "matplotlib"
    if name in sys.modules:
        yield
        return
    # An import then raises `ModuleNotFoundError`.
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]
