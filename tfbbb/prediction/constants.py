"""What a compiled prediction keeps as constants: the attributes of layers.

TensorFlow reads variables each time a graph runs. All else that a layer reads becomes
part of the graph when it is traced: numbers of Python, tensors, the handles of
variables and of lookup tables. After `Normalization.adapt`,
`StringLookup.set_vocabulary` or an assignment to an attribute, such a graph goes on
with the former values.
"""

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.private_apis import own_variables
from tfbbb.layers import VariationalLayer

_NUMBERS = (int, float, complex, np.generic)
_PLAIN = (*_NUMBERS, str, bytes, type(None), tf.DType, tf.TensorShape)
_VALUES = (*_NUMBERS, np.ndarray, tf.Tensor, tf.Variable)


class Constants:
    """What the graphs of all layers of a model keep as constants, at one moment.

    It holds the objects, so that no other object takes their identity.
    """

    def __init__(self, layers: Iterable[keras.Layer]):
        self._found = [part for layer in layers for part in _of_layer(layer)]

    def are_same(self, other: "Constants") -> bool:
        """Whether graphs that were traced at either moment compute the same."""
        return len(self._found) == len(other._found) and all(
            one is two or (type(one) is type(two) and _are_equal(one, two))
            for one, two in zip(self._found, other._found, strict=True)
        )


def _are_equal(one: Any, two: Any) -> bool:
    return isinstance(one, _PLAIN) and bool(one == two)


def _of_layer(layer: keras.Layer) -> Iterator[Any]:
    yield from own_variables(layer)
    is_model = isinstance(layer, keras.Model)
    keeps_books = is_model or isinstance(layer, VariationalLayer)
    bookkeeping = _bookkeeping()
    for name, value in vars(layer).items():
        if name in bookkeeping or (keeps_books and name.startswith("_")):
            continue
        if not is_model or isinstance(value, _VALUES):
            yield name
            yield value


@functools.cache
def _bookkeeping() -> frozenset[str]:
    """Returns the attributes of every layer or model that no call reads."""
    of_loops = {"stop_training", "stop_evaluating", "stop_predicting"}
    return (frozenset(vars(keras.Layer())) | of_loops) - {"_dtype_policy"}
