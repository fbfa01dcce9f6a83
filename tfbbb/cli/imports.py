"""Import of TensorFlow by a command."""

import os

from tfbbb.base.tensorflow_startup import import_tensorflow as import_quietly
from tfbbb.cli.errors import CommandError


def import_tensorflow() -> None:
    """Imports TensorFlow; see `tfbbb.tensorflow_startup`.

    Raises:
        CommandError: `KERAS_BACKEND` names another backend.
    """
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if backend != "tensorflow":
        raise CommandError(
            "tfbbb runs on the TensorFlow backend of Keras only: unset the environment "
            f"variable KERAS_BACKEND. Received: KERAS_BACKEND={backend!r}"
        )
    import_quietly()
