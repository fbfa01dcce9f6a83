"""What computes the answers of an exported model: NumPy or TensorFlow."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfbbb.base.threads import map_in_threads, one_blas_thread
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.export.numpy_engine.functions import texts


@dataclass(frozen=True)
class Engine:
    """How the functions of a file are called, and how many rows they take at the most.

    `call` returns a function of nested tensors, `tensor` an array as a tensor, and
    `map` the results of parts of the rows.
    """

    call: Callable[[Any], Callable[..., Any]]
    tensor: Callable[[ArrayLike], Tensor]
    rows_at_a_time: int
    map: Callable[..., Iterable[Any]]


def tensorflow_engine() -> Engine:
    """Returns the engine that runs the functions of the SavedModel."""
    import tensorflow as tf

    from tfbbb.prediction.compiled import fast_call

    return Engine(fast_call, tf.constant, sys.maxsize, map)


def _array(value: ArrayLike) -> np.ndarray:
    """Returns an array, of texts in UTF-8 as TensorFlow has them."""
    array = np.asarray(value)
    if array.dtype.kind not in "OU":
        return array
    encoded = [x if isinstance(x, bytes) else str(x).encode() for x in array.ravel()]
    return texts(encoded, array.shape)


def _numpy_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function whose products are not shared among threads of BLAS.

    How they are shared decides about last bits.
    """

    def call(*arguments: Any) -> Any:
        with one_blas_thread():
            return function(*arguments)

    return call


# The arrays of so many rows fit into a processor's cache: NumPy computes one operation
# after the other.
NUMPY = Engine(_numpy_call, _array, 256, map_in_threads)
