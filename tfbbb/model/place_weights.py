"""Weights of the rows of a minibatch, and of their places, such as time steps."""

import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor


def split_weights(
    sample_weight: ArrayLike, mask: Tensor | None, num_places: int, copies: int = 1
) -> tuple[ArrayLike, tf.Tensor | None]:
    """Returns the weights of rows, and those of places, [copies * rows, places...].

    The weight of a place is its sample weight, 0 where the mask leaves it out. That of
    the places of a row is 0 if that of the row is, so that targets of such rows may
    have any values.

    Weights may have a last axis of 1. The mask of the outputs, [copies * rows, ...],
    may have the first of the places only.
    """
    of_places = None
    if sample_weight is not None and num_places:
        given = tf.convert_to_tensor(sample_weight)
        if given.shape.rank == num_places + 2:
            given = given[..., 0]
        if given.shape.rank == num_places + 1 and any(n != 1 for n in given.shape[1:]):
            of_places = tf.cast(repeated(given, copies), tf.float32)
            sample_weight = None
    if mask is not None and mask.shape.rank > num_places + 1:
        raise ValueError(
            "The mask of the outputs must have one entry for each row or place: at "
            f"most {num_places + 1} axes. Received: a mask of shape {mask.shape}"
        )
    for counted in (mask, _rows_that_count(sample_weight, copies)):
        if counted is not None:
            while counted.shape.rank < num_places + 1:
                counted = counted[..., tf.newaxis]
            factor = tf.cast(counted, tf.float32)
            of_places = factor if of_places is None else of_places * factor
    return sample_weight, of_places


def _rows_that_count(sample_weight: ArrayLike, copies: int) -> tf.Tensor | None:
    """Returns which rows have a weight, [copies * rows]; None without weights of rows.

    Members with weights of their own give every row a target.
    """
    if sample_weight is None:
        return None
    given = tf.convert_to_tensor(sample_weight)
    if given.shape.rank is None or any(n != 1 for n in given.shape[1:]):
        return None
    return repeated(tf.reshape(given, [-1]) != 0, copies)


def repeated(tensor: Tensor, copies: int | Tensor) -> tf.Tensor:
    """Returns [rows, ...] as [copies * rows, ...], copy by copy."""
    if isinstance(tensor, tf.SparseTensor):
        # A batch is small; TensorFlow repeats no sparse tensor.
        tensor = tf.sparse.to_dense(tensor)
    tensor = tf.convert_to_tensor(tensor)
    if isinstance(copies, int) and copies == 1:
        return tensor
    return tf.tile(tensor, [copies, *[1] * (len(tensor.shape) - 1)])
