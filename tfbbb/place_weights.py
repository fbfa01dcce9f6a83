"""Weights of the rows of a minibatch, and of their places, such as time steps."""

from typing import Any

import tensorflow as tf

from tfbbb.types import Tensor


def split_weights(
    sample_weight: Any, mask: Any, num_places: int, copies: int = 1
) -> tuple[Any, tf.Tensor | None]:
    """Returns the weights of rows, and those of places, [copies * rows, places...].

    The weight of a place is its sample weight, 0 where the mask leaves it out.

    Args:
        sample_weight: Weights of rows, [rows], or of places, [rows, places...], each
            with or without a last axis of 1; or None.
        mask: Keras' mask of the outputs, [copies * rows, ...] with the first of the
            places, or None.
        num_places: Number of axes between the rows and the parameters of an output.
        copies: How often the outputs hold each row, one copy after the other.

    Returns:
        Weights of rows, as they were given, and of places; each may be None.

    Raises:
        ValueError: The mask has more axes than rows and places.
    """
    of_places = None
    if sample_weight is not None and num_places:
        given = tf.convert_to_tensor(sample_weight)
        if given.shape.rank == num_places + 2:
            given = given[..., 0]
        if given.shape.rank == num_places + 1 and any(n != 1 for n in given.shape[1:]):
            sample_weight, of_places = None, repeated(given, copies)
    if mask is None:
        return sample_weight, of_places
    if mask.shape.rank > num_places + 1:
        raise ValueError(
            "The mask of the outputs must have one entry for each row or place: at "
            f"most {num_places + 1} axes. Received: a mask of shape {mask.shape}"
        )
    while mask.shape.rank < num_places + 1:
        mask = mask[..., tf.newaxis]
    if of_places is None:
        return sample_weight, tf.cast(mask, tf.float32)
    return sample_weight, of_places * tf.cast(mask, of_places.dtype)


def repeated(tensor: Tensor, copies: Any) -> tf.Tensor:
    """Returns [rows, ...] as [copies * rows, ...], copy by copy."""
    tensor = tf.convert_to_tensor(tensor)
    if isinstance(copies, int) and copies == 1:
        return tensor
    return tf.tile(tensor, [copies, *[1] * (len(tensor.shape) - 1)])
