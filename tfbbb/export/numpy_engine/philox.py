"""TensorFlow's stateless random bits, by NumPy.

Philox 4x32 with ten rounds (Salmon et al. 2011): a function of a key and a counter.
"""

import math

import numpy as np

_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = 0x9E3779B9, 0xBB67AE85
_LOW, _BITS = np.uint64(0xFFFFFFFF), np.uint64(32)
# What TensorFlow scrambles seeds with.
_SCRAMBLING_KEY = 0x3EC8F720, 0x02461E29


def key_and_counter(seed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the key, uint64 [1], and the counter, uint64 [2], of a seed."""
    first, second = (int(number) % 2**64 for number in seed)
    counter = [first & 0xFFFFFFFF, first >> 32, second & 0xFFFFFFFF, second >> 32]
    mixed = _blocks([np.array([word], np.uint64) for word in counter], _SCRAMBLING_KEY)
    a, b, c, d = (int(word[0]) for word in mixed)
    return np.array([a | b << 32], np.uint64), np.array([0, c | d << 32], np.uint64)


def words(
    shape: tuple[int, ...], key: np.ndarray, counter: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    """Returns random bits of 32- or 64-bit integers.

    The stream begins at a counter, uint64 [2], of four words of 32 bits at a time.
    """
    size = math.prod(shape) * dtype.itemsize // 4
    found = _stream(-(-size // 4), key, counter)[:size]
    return found.view(dtype).reshape(shape)


def _stream(blocks: int, key: np.ndarray, counter: np.ndarray) -> np.ndarray:
    """Returns so many blocks of four words, uint32 [4 blocks]."""
    low = counter[0] + np.arange(blocks, dtype=np.uint64)
    # The counter has 128 bits.
    high = counter[1] + (low < counter[0]).astype(np.uint64)
    parts = [low & _LOW, low >> _BITS, high & _LOW, high >> _BITS]
    first, second = int(key[0]) & 0xFFFFFFFF, int(key[0]) >> 32
    mixed = _blocks(parts, (first, second))
    return np.stack(mixed, axis=-1).astype(np.uint32).ravel()


def _blocks(counter: list[np.ndarray], key: tuple[int, int]) -> list[np.ndarray]:
    a, b, c, d = counter
    one, other = key
    for _ in range(_ROUNDS):
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, c = (
            (second >> _BITS) ^ b ^ np.uint64(one),
            (first >> _BITS) ^ d ^ np.uint64(other),
        )
        b, d = second & _LOW, first & _LOW
        one, other = (one + _WEYL[0]) & 0xFFFFFFFF, (other + _WEYL[1]) & 0xFFFFFFFF
    return [a, b, c, d]
