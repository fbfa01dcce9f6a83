"""Shapes of events, of static numbers or of tensors."""

import numpy as np
import tensorflow as tf

from tfbbb.base.types import Shape


def event_size(event_shape: Shape) -> int:
    """Returns the number of elements of an event: an integer if it is known.

    A Python integer, as Keras takes no other for a number of units.
    """
    shape = tf.convert_to_tensor(event_shape, dtype=tf.int32)
    static = tf.get_static_value(shape)
    if static is None:
        return tf.reduce_prod(shape)
    return int(np.prod(static, dtype=np.int64))


def as_vector(event_shape: Shape) -> tf.Tensor:
    """Returns an event's shape, a scalar or vector, as a vector."""
    return tf.reshape(tf.convert_to_tensor(event_shape, dtype_hint=tf.int32), [-1])


def with_event_shape(params: tf.Tensor, event_shape: Shape) -> tf.Tensor:
    """Reshapes [..., prod(event_shape)] to [..., *event_shape]."""
    shape = tf.concat(
        [tf.shape(params)[:-1], tf.cast(as_vector(event_shape), tf.int32)], axis=0
    )
    reshaped = tf.reshape(params, shape)
    static = tf.get_static_value(as_vector(event_shape))
    if static is not None:
        reshaped.set_shape([*params.shape[:-1], *(int(n) for n in static)])
    return reshaped
