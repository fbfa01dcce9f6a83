"""Categories as indicator features."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.types import Config, Tensor
from tfbbb.tables.row_encoder import RowEncoder


@keras.saving.register_keras_serializable(package="tfbbb")
class OneHot(RowEncoder):
    """Encodes each text column as one indicator per category and one for other texts.

        h_c = 1 if x = category c, else 0;   h_other = 1 if x is no category, else 0

    The empty text, a missing value, has the mean of the categories unless it is one: of
    C categories, h_c = 1/C and h_other = 0.

    The layer compares texts with the categories directly: a lookup table would be a
    resource that every exported graph must track and initialise.

    Input shape:
        A list of text tensors `[n]`, one per column.

    Output shape:
        `[n, sum of (number of categories + 1)]`.

    Example:
    >>> import numpy as np, tensorflow as tf
    >>> layer = OneHot([["blue", "red"]])
    >>> np.asarray(layer([tf.constant(["red", "green", ""])]))
    array([[0. , 1. , 0. ],
           [0. , 0. , 1. ],
           [0.5, 0.5, 0. ]], dtype=float32)
    """

    def __init__(self, categories: Sequence[Sequence[str]], **kwargs: Any):
        super().__init__(**kwargs)
        self.categories = [list(texts) for texts in categories]
        # XLA does not support strings.
        self.supports_jit = False

    def _encode(self, inputs: Sequence[Tensor]) -> Tensor:
        features = []
        for column, texts in zip(inputs, self.categories, strict=True):
            known = tf.equal(column[:, None], tf.constant(texts, shape=(1, len(texts))))
            unknown = ~tf.reduce_any(known, axis=-1, keepdims=True)
            known, unknown = (tf.cast(x, self.compute_dtype) for x in (known, unknown))
            if "" not in texts:
                missing = tf.cast(tf.equal(column, "")[:, None], self.compute_dtype)
                known, unknown = known + missing / len(texts), unknown - missing
            features += [known, unknown]
        return tf.concat(features, axis=-1)

    def compute_output_shape(self, input_shape):
        width = sum(len(texts) + 1 for texts in self.categories)
        return (input_shape[0][0], width)

    def get_config(self) -> Config:
        return {**super().get_config(), "categories": self.categories}
