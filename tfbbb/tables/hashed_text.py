"""Texts as indicators of the bucket that their hash falls into."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Config, Tensor
from tfbbb.tables.row_encoder import RowEncoder
from tfbbb.tables.text_means import TextMeans


@keras.saving.register_keras_serializable(package="tfbbb")
class HashedText(RowEncoder):
    """Encodes each text column as one indicator per bucket and one for no text.

        h_b = 1 if hash(x) mod B = b, else 0;   h_missing = 1 if x is empty, else 0

    for columns of more texts than can be listed (Weinberger et al. 2009). Texts in one
    bucket look the same to the model, also texts that training did not see. The hash is
    FarmHash's 64-bit fingerprint, the same on every machine.

    A column with means has one number more, the mean of the text or 0: see
    `tfbbb.tables.text_means.TextMeans`.

    Input shape:
        A list of text tensors `[n]`, one per column.

    Output shape:
        `[n, sum of (B + 1)]`, and 1 more per column with means.

    Example:
    >>> import numpy as np, tensorflow as tf
    >>> layer = HashedText([4])
    >>> np.asarray(layer([tf.constant(["mill lane", "", "mill lane"])]))
    array([[1., 0., 0., 0., 0.],
           [0., 0., 0., 0., 1.],
           [1., 0., 0., 0., 0.]], dtype=float32)
    """

    def __init__(
        self,
        buckets: Sequence[int],
        codes: Sequence[Sequence[int]] | None = None,
        means: Sequence[Sequence[float]] | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.buckets = [int(number) for number in buckets]
        without: list[Sequence[Any]] = [()] * len(self.buckets)
        self._means = tuple(
            TextMeans(*column)
            for column in zip(
                self.buckets,
                map(tuple, codes or without),
                map(tuple, means or without),
                strict=True,
            )
        )
        # XLA does not support strings.
        self.supports_jit = False

    def _encode(self, inputs: Sequence[Tensor]) -> Tensor:
        features = []
        for column, known in zip(inputs, self._means, strict=True):
            found = text_bucket(column, known.buckets)
            if known.means:
                found, means = known.lookup(column, found)
            hashed = tf.one_hot(found, known.buckets + 1)
            features.append(tf.cast(hashed, self.compute_dtype))
            if known.means:
                features.append(tf.cast(means[:, None], self.compute_dtype))
        return tf.concat(features, axis=-1)

    def compute_output_shape(self, input_shape):
        widths = (known.buckets + 1 + bool(known.means) for known in self._means)
        return (input_shape[0][0], sum(widths))

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "buckets": self.buckets,
            "codes": [list(known.codes) for known in self._means],
            "means": [list(known.means) for known in self._means],
        }


def text_bucket(texts: ArrayLike, buckets: int) -> Tensor:
    """Returns the bucket of each text, int32 `[n]`; `buckets` for the empty text."""
    found = tf.cast(tf.strings.to_hash_bucket_fast(texts, buckets), tf.int32)
    return tf.where(tf.equal(texts, ""), buckets, found)
