"""The one backend that TensorFlow Probability and SavedModels allow.

Importing this module raises where Keras is set to another backend, before any layer
could be built on it.
"""

import keras

if keras.backend.backend() != "tensorflow":
    raise ImportError(
        "tfbbb runs on the TensorFlow backend of Keras only. Set the environment "
        'variable KERAS_BACKEND="tensorflow" before Keras is imported. '
        f"Received: keras.backend.backend()={keras.backend.backend()!r}"
    )
