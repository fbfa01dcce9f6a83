"""Variables of a SavedModel, of which equal ones are stored once."""

import hashlib
from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from tfbbb.types import Tensor


class SharedVariables:
    """Makes variables of tensors, one for all that have the same contents.

    The moments of weights serve several methods, and the means of a factorised
    posterior are variables of the model.

    Args:
        known: Variables of the model, which are shared too.
    """

    def __init__(self, known: Iterable[keras.Variable]):
        self._by_contents: dict[Any, tf.Variable] = {}
        for variable in known:
            resource = variable.value
            if isinstance(resource, tf.Variable):
                self._by_contents.setdefault(_contents(resource), resource)

    def of(self, tensors: Any) -> Any:
        """Returns a nested structure of tensors as one of variables."""
        return tf.nest.map_structure(self._variable, tensors)

    def _variable(self, tensor: Tensor) -> tf.Variable:
        key = _contents(tensor)
        if key not in self._by_contents:
            self._by_contents[key] = tf.Variable(tensor, trainable=False)
        return self._by_contents[key]


def _contents(tensor: Tensor) -> tuple[Any, ...]:
    array = tensor.numpy()
    digest = hashlib.sha256(array.tobytes()).digest()
    return tuple(array.shape), tensor.dtype, digest
