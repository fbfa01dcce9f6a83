"""Import of TensorFlow without its messages on the terminal."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tfbbb.cli.errors import CommandError


def import_tensorflow() -> None:
    """Imports TensorFlow and hides its messages about the machine's devices.

    Raises:
        CommandError: `KERAS_BACKEND` names another backend.
    """
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if backend != "tensorflow":
        raise CommandError(
            "tfbbb runs on the TensorFlow backend of Keras only: unset the environment "
            f"variable KERAS_BACKEND. Received: KERAS_BACKEND={backend!r}"
        )
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _suppress_stderr():
        import tensorflow as tf

        tf.config.list_logical_devices()


@contextmanager
def _suppress_stderr() -> Iterator[None]:
    """Discards the output to file descriptor 2, but prints it if an error is raised."""
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(terminal, held.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
