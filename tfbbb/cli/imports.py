"""TensorFlow without what it writes to the terminal when it is imported."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tfbbb.cli.errors import CommandError


def import_tensorflow() -> None:
    """Imports TensorFlow; its notes on the machine's devices stay unseen.

    Raises:
        CommandError: Keras is told to use another backend.
    """
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if backend != "tensorflow":
        raise CommandError(
            "tfbbb runs on the TensorFlow backend of Keras only: unset the environment "
            f"variable KERAS_BACKEND, which is {backend!r}."
        )
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _withheld_stderr():
        import tensorflow as tf

        tf.config.list_logical_devices()


@contextmanager
def _withheld_stderr() -> Iterator[None]:
    """Holds back what is written to the file descriptor, unless there is an error."""
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
