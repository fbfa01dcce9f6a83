"""Texts as features: one indicator per category, or per bucket of a hash."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.tables.number_features import RowEncoder


@keras.saving.register_keras_serializable(package="tfbbb")
class OneHot(RowEncoder):
    """Encodes each text column as one indicator per category and one for other texts.

        h_c = 1 if x = category c, else 0;   h_other = 1 if x is no category, else 0

    The empty text, a missing value, has the mean of the categories unless it is one: of
    C categories, h_c = 1/C and h_other = 0.

    The layer compares texts with the categories directly: a lookup table would be a
    resource that every exported graph must track and initialise.
    """

    settings = ("categories",)

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


_CODES = 2**63 - 1
# Of training rows, which hold a mean as one of so many numbers, 0 in the middle.
_LEVELS = 65


def text_code(texts: ArrayLike) -> Tensor:
    """Returns the number of each text by FarmHash's 64-bit fingerprint, int64 `[n]`."""
    return tf.strings.to_hash_bucket_fast(texts, _CODES)


@dataclass(frozen=True)
class TextMeans:
    """The mean target of each text of a column with buckets; other texts have 0."""

    buckets: int
    codes: tuple[int, ...]
    means: tuple[float, ...]

    @property
    def texts_of_rows(self) -> list[str]:
        """The text of each number that `encode` returns."""
        return [
            f"<mean {level:02d}, bucket {bucket}>"
            for level in range(_LEVELS)
            for bucket in range(self.buckets + 1)
        ]

    def encode(self, buckets: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Returns the buckets and means of training rows as one integer each, `[n]`."""
        step = np.abs(self.means).max() / (_LEVELS // 2)
        highest = _LEVELS // 2
        levels = np.clip(np.rint(means / step), -highest, highest) + highest
        return levels.astype(np.int64) * (self.buckets + 1) + buckets

    def lookup(self, texts: Tensor, buckets: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the bucket and the mean of texts, int32 and float32 `[n]`."""
        codes, of_rows, means = self._table
        asked = text_code(texts)
        places = tf.searchsorted(codes, asked)
        places = tf.minimum(places, len(codes) - 1)
        known = tf.equal(tf.gather(codes, places), asked)
        found = tf.where(known, tf.gather(of_rows, places), -1)
        found = tf.where(found < 0, buckets, found)
        return found, tf.where(known, tf.gather(means, places), 0.0)

    @functools.cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All codes, ascending, buckets of texts of rows, else -1, and the means."""
        with tf.init_scope():
            of_rows = text_code(self.texts_of_rows).numpy()
        levels = np.linspace(-1.0, 1.0, _LEVELS) * np.abs(self.means).max()
        buckets = np.arange(self.buckets + 1)
        codes = np.concatenate([self.codes, of_rows]).astype(np.int64)
        buckets = np.concatenate(
            [np.full(len(self.codes), -1), np.tile(buckets, _LEVELS)]
        )
        means = np.concatenate([self.means, np.repeat(levels, self.buckets + 1)])
        order = np.argsort(codes)
        return (
            codes[order],
            buckets[order].astype(np.int32),
            means[order].astype(np.float32),
        )


@keras.saving.register_keras_serializable(package="tfbbb")
class HashedText(RowEncoder):
    """Encodes each text column as one indicator per bucket and one for no text.

        h_b = 1 if hash(x) mod B = b, else 0;   h_missing = 1 if x is empty, else 0

    for columns of more texts than can be listed (Weinberger et al. 2009). Texts in one
    bucket look the same to the model, also texts that training did not see. The hash is
    FarmHash's 64-bit fingerprint, the same on every machine.

    A column with means has one number more, the mean of the text or 0.
    """

    settings = ("buckets", "codes", "means")

    def __init__(
        self,
        buckets: Sequence[int],
        codes: Sequence[Sequence[int]] | None = None,
        means: Sequence[Sequence[float]] | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.buckets = [int(number) for number in buckets]
        self.codes = [*map(list, codes or [()] * len(self.buckets))]
        self.means = [*map(list, means or [()] * len(self.buckets))]
        columns = zip(self.buckets, self.codes, self.means, strict=True)
        self._means = tuple(TextMeans(x, tuple(y), tuple(z)) for x, y, z in columns)
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


def text_bucket(texts: ArrayLike, buckets: int) -> Tensor:
    """Returns the bucket of each text, int32 `[n]`; `buckets` for the empty text."""
    found = tf.cast(tf.strings.to_hash_bucket_fast(texts, buckets), tf.int32)
    return tf.where(tf.equal(texts, ""), buckets, found)
