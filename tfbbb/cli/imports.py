"""Import of TensorFlow by a command, if the command needs it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tfbbb.base.tensorflow_startup import import_tensorflow as import_quietly
from tfbbb.base.tensorflow_startup import require_tensorflow
from tfbbb.cli.errors import CommandError

if TYPE_CHECKING:
    from tfbbb.export import ExportedModel


def import_tensorflow() -> None:
    """Imports TensorFlow; see `tfbbb.tensorflow_startup`."""
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if backend != "tensorflow":
        raise CommandError(
            "tfbbb runs on the TensorFlow backend of Keras only: unset the environment "
            f"variable KERAS_BACKEND. Received: KERAS_BACKEND={backend!r}"
        )
    import_quietly()


def load_model(path: Path) -> "ExportedModel":
    """Loads an exported model; imports TensorFlow only if the model needs it."""
    from tfbbb.export.manifest import Manifest
    from tfbbb.export.reader import load

    if missing := Manifest.read(path).needs_tensorflow:
        require_tensorflow(f"{missing} The model")
        import_tensorflow()
    return load(path)
