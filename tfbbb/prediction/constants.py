"""What a compiled prediction keeps as constants: all that is not a variable.

TensorFlow reads variables each time a graph runs. All else that a layer reads becomes
part of the graph when it is traced: numbers of Python, arrays of NumPy, tensors, the
handles of variables and of lookup tables, and what a function closes over. After
`Normalization.adapt`, `StringLookup.set_vocabulary` or an assignment to an attribute,
such a graph goes on with the former values.
"""

import functools
import inspect
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.private_apis import own_variables
from tfbbb.layers import VariationalLayer

# Larger arrays and containers are compared by identity.
_MOST_BYTES, _MOST_PARTS = 1 << 16, 1000
# Functions and containers within each other.
_DEPTH = 4
# These packages change nothing that their functions read.
_LIBRARIES = ("keras.", "numpy.", "tensorflow.", "tensorflow_probability.", "tfbbb.")
_NUMBERS = (int, float, complex, np.generic)
_PLAIN = (*_NUMBERS, str, bytes, type(None), tf.DType, tf.TensorShape)
_LEAVES = frozenset((bool, int, float, str, type(None), keras.Variable))
_CONTAINERS = (dict, list, tuple)
_VALUES = (*_NUMBERS, np.ndarray, tf.Tensor, tf.Variable)


class Constants:
    """What the graphs of some layers keep as constants, at one moment.

    It holds the objects, so that no other object takes their identity.

    Args:
        layers: All layers of a model, the model first.
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
        if is_model and not isinstance(value, _VALUES):
            continue
        yield name
        yield from _parts(value, _DEPTH)
    if not type(layer).__module__.startswith(_LIBRARIES):
        yield from _of_function(type(layer).call, _DEPTH)


@functools.cache
def _bookkeeping() -> frozenset[str]:
    """Returns the attributes of every layer or model that no call reads."""
    of_loops = {"stop_training", "stop_evaluating", "stop_predicting"}
    return (frozenset(vars(keras.Layer())) | of_loops) - {"_dtype_policy"}


def _parts(value: Any, depth: int) -> Iterator[Any]:
    """Yields the parts of a value; equal values have equal parts."""
    if type(value) in _LEAVES:
        yield value
    elif isinstance(value, np.ndarray) and value.nbytes <= _MOST_BYTES:
        yield from (*value.shape, value.dtype.str, value.tobytes())
    elif isinstance(value, FunctionType | MethodType):
        yield from _of_function(value, depth)
    elif isinstance(value, _CONTAINERS) and len(value) <= _MOST_PARTS and depth:
        yield len(value)
        for part in value.items() if isinstance(value, dict) else value:
            yield from _parts(part, depth - 1)
    else:
        yield value


def _of_function(function: Any, depth: int) -> Iterator[Any]:
    """Yields a function, its closure variables, and the globals it reads."""
    function = getattr(function, "__func__", function)
    yield function
    known = not isinstance(function, FunctionType)
    if known or not depth or function.__module__.startswith(_LIBRARIES):
        return
    found = inspect.getclosurevars(function)
    for value in (*found.nonlocals.values(), *found.globals.values()):
        if isinstance(value, (*_VALUES, *_CONTAINERS, FunctionType)):
            yield from _parts(value, depth - 1)
