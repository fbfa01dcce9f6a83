"""The one backend that TensorFlow Probability and SavedModels allow.

Importing this module raises where Keras is set to another backend, before any layer
could be built on it.
"""

import os
import sys


def _refuse(backend: str) -> None:
    raise ImportError(
        "tfbbb runs on the TensorFlow backend of Keras only. Set the environment "
        'variable KERAS_BACKEND="tensorflow" before Keras is imported. '
        f"Received: backend={backend!r}"
    )


# Asked before Keras is imported: the import itself may fail without the other backend.
_requested = os.environ.get("KERAS_BACKEND") or "tensorflow"
if "keras" not in sys.modules and _requested != "tensorflow":
    _refuse(_requested)

import keras  # noqa: E402  (see above)

if keras.backend.backend() != "tensorflow":
    _refuse(keras.backend.backend())

from tfbbb.base.lazy import keras_is_loaded  # noqa: E402  (see above)

keras_is_loaded()
