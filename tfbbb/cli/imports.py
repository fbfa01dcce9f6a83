"""Import of TensorFlow by a command, if the command needs it."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tfbbb.base.tensorflow_startup import import_tensorflow as import_with_devices
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
    with _held_stderr():
        import_with_devices()


@contextmanager
def _held_stderr() -> Iterator[None]:
    """Keeps the lines of TensorFlow's start from people, unless it fails.

    TensorFlow writes them before it reads its settings.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Exception:
            held.seek(0)
            os.write(stderr, held.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def load_model(path: Path) -> "ExportedModel":
    """Loads an exported model; imports TensorFlow only if the model needs it."""
    from tfbbb.export.manifest import Manifest
    from tfbbb.export.reader import load

    if missing := Manifest.read(path).needs_tensorflow:
        require_tensorflow(f"{missing} The model")
        import_tensorflow()
    return load(path)
