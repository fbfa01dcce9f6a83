"""Importing this module imports Keras, or raises where it has another backend."""

from tfbbb.base.lazy import import_keras

import_keras()
