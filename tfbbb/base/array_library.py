"""The library that computes with some arrays, NumPy or TensorFlow, by one name."""

import importlib
import sys
from typing import Any

import numpy as np

from tfbbb.base.types import ArrayLike


def numpy_of(*values: ArrayLike) -> Any:
    """Returns NumPy; for tensors TensorFlow's functions of the same names.

    Formulas that both graphs and programs without TensorFlow compute are written once,
    with its functions.
    """
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and any(map(tensorflow.is_tensor, values)):
        return tensorflow.experimental.numpy
    return np


def special_of(*values: ArrayLike) -> Any:
    """Returns `scipy.special`; for tensors `tf.math`, which shares some names."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and any(map(tensorflow.is_tensor, values)):
        return tensorflow.math
    return importlib.import_module("scipy.special")
