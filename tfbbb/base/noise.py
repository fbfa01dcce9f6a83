"""Random numbers that are functions of a seed and a place, and of nothing else.

A seed is an int32 tensor of shape [2], as TensorFlow's stateless generators take it.
"""

from __future__ import annotations

import math

from tfbbb.base.lazy import np, tf
from tfbbb.base.types import DType, Shape, Tensor

_PHILOX = 1
_WORDS_PER_COUNT = 4
# Radii and angles of one entry then fill whole vectors of a processor (16 numbers at
# the most): the odd ones at an end would be rounded differently.
_COUNTS_AT_A_TIME = 8


def fold(seed: Tensor, *places: int | Tensor) -> tf.Tensor:
    """Returns a new seed for `places` (integers), independent of that for any other."""
    for place in places:
        seed = tf.random.experimental.stateless_fold_in(seed, place)
    return seed


def normal(seed: Tensor, shape: Shape, dtype: DType = "float32") -> tf.Tensor:
    """Returns standard normal noise of `shape`.

    One word of 32 random bits makes two numbers (Box and Muller 1958): 20 bits their
    radius, 12 bits their angle. All moments of the angle up to the order of 4095 are
    those of a continuous one, the variance is 1 to 4e-7, and the largest number is 5.4.
    Random bits are most of what noise costs.
    """
    size = math.prod(shape, start=tf.constant(1))
    normals = _box_muller(_words((size + 1) // 2, seed))
    return tf.cast(tf.reshape(normals[:size], shape), dtype)


def signs(seed: Tensor, shape: Shape, dtype: DType = "float32") -> tf.Tensor:
    """Returns independent signs of `shape`, exactly -1 or +1 with equal chance.

    Each is one random bit.
    """
    size = math.prod(shape, start=tf.constant(1))
    bytes_ = tf.bitcast(_words((size + 31) // 32, seed), tf.uint8)
    # The signs that the eight bits of a byte stand for.
    of_byte = 2.0 * (np.arange(256)[:, np.newaxis] >> np.arange(8) & 1) - 1.0
    of_bytes = tf.gather(
        tf.constant(of_byte, dtype), tf.cast(tf.reshape(bytes_, [-1]), tf.int32)
    )
    return tf.reshape(tf.reshape(of_bytes, [-1])[:size], shape)


def _words(number: int | Tensor, seed: Tensor) -> tf.Tensor:
    """Returns so many words of 32 random bits."""
    return tf.random.stateless_uniform(
        [number], seed, minval=None, maxval=None, dtype=tf.int32
    )


def normal_block(
    seed: Tensor, first: int | Tensor, count: int | Tensor, shape: Shape
) -> tf.Tensor:
    """Returns entries `first` to `first + count` of an endless list of noise arrays.

    Entry i has shape `shape` and is the same however the list is cut into blocks: the
    generator (Philox, Salmon et al. 2011) is a function of a counter, of which every
    entry owns a stretch, each count giving four words, and each word two normals.
    """
    size = math.prod(shape, start=tf.constant(1))
    per_count = 2 * _WORDS_PER_COUNT
    counts = -(-size // (per_count * _COUNTS_AT_A_TIME)) * _COUNTS_AT_A_TIME
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
    skipped = tf.cast(first, tf.uint64) * tf.cast(counts, tf.uint64)
    counter = tf.stack([counter[0] + skipped, counter[1]])
    words = tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=tf.stack([count, counts * _WORDS_PER_COUNT]),
        key=key,
        counter=counter,
        alg=_PHILOX,
        dtype=tf.int32,
    )
    return tf.reshape(_box_muller(words)[:, :size], [count, *shape])


def _box_muller(words: tf.Tensor) -> tf.Tensor:
    """Returns normals from words of 32 bits, twice as many along the last axis."""
    # The shift keeps the sign: -2^19 to 2^19, of which the middles of steps are taken.
    uniform = tf.cast(tf.bitwise.right_shift(words, 12), tf.float32) * 2.0**-20
    radius = tf.sqrt(-2.0 * tf.math.log(uniform + (0.5 + 2.0**-21)))
    angle = tf.cast(tf.bitwise.bitwise_and(words, 4095), tf.float32)
    angle *= 2.0 * math.pi / 4096
    return tf.concat([radius * tf.cos(angle), radius * tf.sin(angle)], axis=-1)
