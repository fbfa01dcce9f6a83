import itertools
import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tfbbb import noise

SEED = tf.constant([3, 4])


def correlation(a, b):
    """Returns the correlation of two samples in units of its standard error."""
    return np.corrcoef(np.ravel(a), np.ravel(b))[0, 1] * math.sqrt(np.size(a))


@pytest.mark.parametrize("shape", [(), (1,), (4,), (7,), (3, 5)])
@settings(max_examples=10, deadline=None, derandomize=True)
@given(cuts=st.sets(st.integers(1, 22)))
def test_entries_are_the_same_however_the_list_is_cut_into_blocks(shape, cuts):
    whole = noise.normal_block(SEED, 0, 23, shape)
    edges = [0, *sorted(cuts), 23]
    parts = [
        noise.normal_block(SEED, first, last - first, shape)
        for first, last in itertools.pairwise(edges)
    ]
    assert whole.shape == (23, *shape)
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_block_of_unknown_place_and_size_is_that_of_known_ones():
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


def test_noise_is_standard_normal():
    values = noise.normal_block(SEED, 0, 1000, (7,)).numpy()
    assert stats.kstest(values.ravel(), "norm").pvalue > 1e-3
    # Four standard errors: of a mean, a variance and a fourth moment.
    size = values.size
    assert abs(values.mean()) < 4.0 / math.sqrt(size)
    assert abs(values.var() - 1.0) < 4.0 * math.sqrt(2.0 / size)
    assert abs((values**4).mean() - 3.0) < 4.0 * math.sqrt(96.0 / size)


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


def test_folding_in_several_places_is_folding_in_one_after_the_other():
    np.testing.assert_array_equal(
        noise.fold(SEED, 1, 2), noise.fold(noise.fold(SEED, 1), 2)
    )
    assert not np.array_equal(noise.fold(SEED, 1, 2), noise.fold(SEED, 2, 1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_signs_are_exactly_one_or_minus_one(dtype):
    signs = noise.signs(SEED, (100, 100), dtype)
    assert signs.dtype == dtype
    assert set(np.unique(signs)) == {-1.0, 1.0}


def test_signs_are_fair_and_independent():
    signs = noise.signs(SEED, (200, 100)).numpy()
    # A sign has variance 1, and so has the product of two: four standard errors.
    assert abs(signs.mean()) < 4.0 / math.sqrt(signs.size)
    for other in (
        np.roll(signs, 1, axis=0),
        np.roll(signs, 1, axis=1),
        noise.signs(noise.fold(SEED, 1), (200, 100)).numpy(),
    ):
        assert abs((signs * other).mean()) < 4.0 / math.sqrt(signs.size)
    # Rows and columns: the mean of 100 or 200 signs, over its standard error.
    for axis in (0, 1):
        sums = signs.sum(axis=axis) / math.sqrt(signs.shape[axis])
        assert abs(sums.var() - 1.0) < 4.0 * math.sqrt(2.0 / sums.size)
