"""Variables of a SavedModel: equal ones are stored once.

The moments of weights serve several methods, and the means of a factorised posterior
are variables of the model.
"""

import hashlib
from collections.abc import Iterable

import keras
import tensorflow as tf

from tfbbb.base.types import Structure, Tensor

# Shape, data type and digest of a tensor.
Contents = tuple[tuple[int, ...], tf.DType, bytes]


def variables_by_contents(
    variables: Iterable[keras.Variable],
) -> dict[Contents, tf.Variable]:
    """Returns the TensorFlow variables behind variables of Keras, by their contents."""
    found: dict[Contents, tf.Variable] = {}
    for variable in variables:
        resource = variable.value
        if isinstance(resource, tf.Variable):
            found.setdefault(_contents(resource), resource)
    return found


def share_variables(
    tensors: Structure, known: dict[Contents, tf.Variable]
) -> Structure:
    """Returns a nested structure of tensors as one of variables.

    Args:
        tensors: The tensors.
        known: Variables by their contents; new variables are added.
    """

    def share(tensor: Tensor) -> tf.Variable:
        contents = _contents(tensor)
        if contents not in known:
            known[contents] = tf.Variable(tensor, trainable=False)
        return known[contents]

    return tf.nest.map_structure(share, tensors)


def _contents(tensor: Tensor) -> Contents:
    array = tensor.numpy()
    digest = hashlib.sha256(array.tobytes()).digest()
    return tuple(array.shape), tensor.dtype, digest
