"""Random numbers that are functions of a seed and a place, and of nothing else.

A seed is an int32 tensor of shape [2], as TensorFlow's stateless generators take it.
"""

import math
from typing import Any

import tensorflow as tf

_PHILOX = 1
_NORMALS_PER_COUNT = 4


def fold(seed: Any, *places: Any) -> tf.Tensor:
    """Returns a new seed for `places` (integers), independent of that for any other."""
    for place in places:
        seed = tf.random.experimental.stateless_fold_in(seed, place)
    return seed


def normal(seed: Any, shape: Any, dtype: Any = tf.float32) -> tf.Tensor:
    """Returns standard normal noise of `shape`."""
    return tf.random.stateless_normal(shape, seed, dtype=dtype)


def signs(seed: Any, shape: Any, dtype: Any = tf.float32) -> tf.Tensor:
    """Returns independent signs of `shape`, exactly -1 or +1 with equal chance."""
    uniform = tf.random.stateless_uniform(shape, seed)
    return tf.cast(2.0 * tf.floor(2.0 * uniform) - 1.0, dtype)


def normal_block(seed: Any, first: Any, count: Any, shape: Any) -> tf.Tensor:
    """Returns entries `first` to `first + count` of an endless list of noise arrays.

    Entry i has shape `shape` and is the same however the list is cut into blocks: the
    generator (Philox, Salmon et al. 2011) is a function of a counter, and entry i owns
    the counts from i * ceil(size / 4) on, each of which gives four normals.

    Args:
        seed: int32 tensor of shape [2].
        first: Index of the first entry.
        count: Number of entries.
        shape: Shape of one entry, integers or integer tensors.

    Returns:
        float32 tensor of shape [count, *shape].
    """
    size = math.prod(shape, start=tf.constant(1))
    counts = -(-size // _NORMALS_PER_COUNT)
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
    skipped = tf.cast(first, tf.uint64) * tf.cast(counts, tf.uint64)
    counter = tf.stack([counter[0] + skipped, counter[1]])
    padded = tf.raw_ops.StatelessRandomNormalV2(
        shape=tf.stack([count, counts * _NORMALS_PER_COUNT]),
        key=key,
        counter=counter,
        alg=_PHILOX,
    )
    return tf.reshape(padded[:, :size], [count, *shape])
