"""The mean target of each text of a column with too many texts to list."""

import functools
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor

_CODES = 2**63 - 1
# Of training rows, which hold a mean as one of so many numbers, 0 in the middle.
_LEVELS = 65


def text_code(texts: ArrayLike) -> Tensor:
    """Returns the number of each text by FarmHash's 64-bit fingerprint, int64 `[n]`."""
    return tf.strings.to_hash_bucket_fast(texts, _CODES)


@dataclass(frozen=True)
class TextMeans:
    """The mean target of each text of a column with buckets; other texts have 0.

    A training row must not be told its own target: it has the mean of its text in other
    rows. It holds its bucket and this mean, rounded to one of 65 levels, as a text that
    stands for both.

    Attributes:
        buckets: The number of buckets of the column.
        codes: The `text_code` of each text, ascending.
        means: The mean of each text.
    """

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
