"""Texts as indicators of the bucket that their hash falls into."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Config, Tensor
from tfbbb.tables.row_encoder import RowEncoder


@keras.saving.register_keras_serializable(package="tfbbb")
class HashedText(RowEncoder):
    """Encodes each text column as one indicator per bucket and one for no text.

        h_b = 1 if hash(x) mod B = b, else 0;   h_missing = 1 if x is empty, else 0

    for columns of more texts than can be listed (Weinberger et al. 2009). Texts in one
    bucket look the same to the model, also texts that training did not see. The hash is
    FarmHash's 64-bit fingerprint, the same on every machine.

    Args:
        buckets: The number of buckets B of each column.

    Input shape:
        A list of text tensors `[n]`, one per column.

    Output shape:
        `[n, sum of (B + 1)]`.

    Example:
    >>> import numpy as np, tensorflow as tf
    >>> layer = HashedText([4])
    >>> np.asarray(layer([tf.constant(["mill lane", "", "mill lane"])]))
    array([[1., 0., 0., 0., 0.],
           [0., 0., 0., 0., 1.],
           [1., 0., 0., 0., 0.]], dtype=float32)
    """

    def __init__(self, buckets: Sequence[int], **kwargs: Any):
        super().__init__(**kwargs)
        self.buckets = [int(number) for number in buckets]
        # XLA does not support strings.
        self.supports_jit = False

    def _encode(self, inputs: Sequence[Tensor]) -> Tensor:
        features = []
        for column, number in zip(inputs, self.buckets, strict=True):
            hashed = tf.one_hot(text_bucket(column, number), number + 1)
            features.append(tf.cast(hashed, self.compute_dtype))
        return tf.concat(features, axis=-1)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], sum(number + 1 for number in self.buckets))

    def get_config(self) -> Config:
        return {**super().get_config(), "buckets": self.buckets}


def text_bucket(texts: ArrayLike, buckets: int) -> Tensor:
    """Returns the bucket of each text, int32 `[n]`; `buckets` for the empty text."""
    found = tf.cast(tf.strings.to_hash_bucket_fast(texts, buckets), tf.int32)
    return tf.where(tf.equal(texts, ""), buckets, found)
