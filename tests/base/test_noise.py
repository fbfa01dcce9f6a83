import itertools
import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from tfbbb.base import noise

SEED = tf.constant([3, 4])
MANY = 200_000
SHAPES = [(), (0,), (1,), (2,), (7,), (0, 3), (3, 5), (31,), (33,), (2, 1, 17)]


def correlation(a, b):
    """Returns the correlation of two samples in units of its standard error."""
    return np.corrcoef(np.ravel(a), np.ravel(b))[0, 1] * math.sqrt(np.size(a))


@pytest.mark.parametrize("shape", [(), (1,), (4,), (7,), (3, 5)])
@settings(max_examples=10, deadline=None, derandomize=True)
@given(cuts=st.sets(st.integers(1, 22)))
def test_entries_do_not_depend_on_the_blocks(shape, cuts):
    whole = noise.normal_block(SEED, 0, 23, shape)
    edges = [0, *sorted(cuts), 23]
    parts = [
        noise.normal_block(SEED, first, last - first, shape)
        for first, last in itertools.pairwise(edges)
    ]
    assert whole.shape == (23, *shape)
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_block_is_the_same_with_dynamic_place_and_size():
    block = tf.function(
        lambda first, count, width: noise.normal_block(SEED, first, count, [width, 2])
    )
    arguments = [tf.constant(5), tf.constant(3), tf.constant(7)]
    np.testing.assert_array_equal(
        block(*arguments), noise.normal_block(SEED, 0, 8, (7, 2))[5:]
    )


def test_entries_beyond_four_billion_numbers_do_not_start_over():
    # Entry 2^20 of 2^14 numbers owns the counts from 2^32 on.
    far = noise.normal_block(SEED, 1 << 20, 1, (1 << 14,))
    near = noise.normal_block(SEED, 0, 1, (1 << 14,))
    assert abs(correlation(far, near)) < 4.0


def test_entries_places_and_seeds_are_uncorrelated():
    values = noise.normal_block(SEED, 0, 3000, (5,)).numpy()
    others = [
        np.roll(values, 1, axis=0),
        np.roll(values, 1, axis=1),
        noise.normal_block(noise.fold(SEED, 0), 0, 3000, (5,)),
        noise.normal_block(noise.fold(SEED, 1), 0, 3000, (5,)),
        noise.normal_block(tf.constant([3, 5]), 0, 3000, (5,)),
        noise.normal_block(tf.constant([4, 4]), 0, 3000, (5,)),
    ]
    for i, first in enumerate([values, *others]):
        for second in others[i:]:
            assert abs(correlation(first, second)) < 4.0


def assert_standard_normal(values):
    """Asserts the distribution, and moments to the sixth within 4.5 errors."""
    values = np.asarray(values, np.float64).ravel()
    assert stats.kstest(values, "norm").pvalue > 1e-3
    for order in range(1, 7):
        # E[z^k] = (k - 1)!! for an even k, and 0 for an odd one.
        expected = special.factorial2(order - 1) if order % 2 == 0 else 0.0
        variance = special.factorial2(2 * order - 1) - expected**2
        error = math.sqrt(variance / values.size)
        assert abs((values**order).mean() - expected) < 4.5 * error


def assert_independent(first, second):
    """Asserts it of sizes, squares and signs of two samples of standard normals."""
    first, second = (np.asarray(sample, np.float64) for sample in (first, second))
    for of_first, of_second in itertools.product(
        (lambda z: z, np.square, np.abs, np.sign), repeat=2
    ):
        assert abs(correlation(of_first(first), of_second(second))) < 4.5


def test_noise_is_standard_normal():
    assert_standard_normal(noise.normal_block(SEED, 0, 1000, (7,)))
    # Of a step, each half alone: the cosines and the sines.
    for half in np.split(noise.normal(SEED, (MANY,)), 2):
        assert_standard_normal(half)


def test_neighbours_seeds_and_places_have_noise_of_their_own():
    values = noise.normal(SEED, (MANY,)).numpy()
    for step in (1, 2, 4, MANY // 2 + 1):
        assert_independent(values, np.roll(values, step))
    for seed in ([3, 5], [4, 4], [4, 3], noise.fold(SEED, 0), noise.fold(SEED, 1)):
        assert_independent(values, noise.normal(tf.constant(seed), (MANY,)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("generator", [noise.normal, noise.signs])
def test_noise_of_any_shape_is_the_beginning_of_one_list(generator, shape):
    values = generator(SEED, shape).numpy()
    assert values.shape == shape
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(values, generator(SEED, shape))
    traced = tf.function(lambda sizes: generator(SEED, tf.unstack(sizes)))
    if shape:
        np.testing.assert_array_equal(traced(tf.constant(shape)), values)
    size = math.prod(shape)
    # Pairs of cosine and sine, or words of signs: the odd ones at the end are unused.
    whole = generator(SEED, (size + size % 2 if generator is noise.normal else 64,))
    np.testing.assert_array_equal(values.ravel(), whole[:size])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_noise_comes_in_the_type_that_is_asked_for(dtype):
    values = noise.normal(SEED, (1000,), dtype)
    assert values.dtype == dtype
    np.testing.assert_array_equal(
        values, tf.cast(noise.normal(SEED, (1000,)), values.dtype)
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_signs_are_exactly_one_or_minus_one(dtype):
    signs = noise.signs(SEED, (100, 100), dtype)
    assert signs.dtype == dtype
    assert set(np.unique(signs)) == {-1.0, 1.0}


def test_signs_of_a_word_are_fair_and_pairwise_independent():
    words = noise.signs(SEED, (20_000, 32)).numpy()
    products = words.T @ words / len(words)
    np.testing.assert_array_equal(np.diag(products), 1.0)
    # 32 means, and 496 products of two: 5 standard errors.
    assert np.abs(words.mean(axis=0)).max() < 5.0 / math.sqrt(len(words))
    pairs = products[np.triu_indices(32, 1)]
    assert np.abs(pairs).max() < 5.0 / math.sqrt(len(words))
    # And of three neighbours, and of all 32.
    threes = words[:, :-2] * words[:, 1:-1] * words[:, 2:]
    assert np.abs(threes.mean(axis=0)).max() < 5.0 / math.sqrt(len(words))
    assert abs(words.prod(axis=1).mean()) < 5.0 / math.sqrt(len(words))
