import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tfbbb.layers import DenseVariational
from tfbbb.prediction.blocks import block_sizes, map_blocks


@settings(max_examples=30, deadline=None, derandomize=True)
@given(total=st.integers(1, 12), block=st.integers(1, 15))
def test_blocks_are_put_together_in_order(total, block):
    values = tf.reshape(tf.range(2 * total), [total, 2])

    def compute(first, count):
        assert 1 <= count <= block
        part = values[first : first + count]
        return {"twice": 2 * part, "sum": tf.reduce_sum(part, axis=1)}

    specs = {
        "twice": tf.TensorSpec([None, 2], tf.int32),
        "sum": tf.TensorSpec([None], tf.int32),
    }
    found = map_blocks(compute, tf.constant(total), tf.constant(block), specs)
    np.testing.assert_array_equal(found["twice"], 2 * values)
    np.testing.assert_array_equal(found["sum"], tf.reduce_sum(values, axis=1))


@pytest.fixture(scope="module")
def model():
    layers = [DenseVariational(units, kl_weight=0.1) for units in (30, 2)]
    return keras.Sequential([keras.Input((20,)), *layers])


@pytest.mark.parametrize("num_samples", [2, 100, 10**6])
@pytest.mark.parametrize("max_floats", [10**4, 10**6, 2**26])
def test_blocks_hold_no_more_than_they_may(model, num_samples, max_floats):
    num_weights = 20 * 30 + 30 + 30 * 2 + 2
    for method, drawn in (("local", 0), ("weight", num_weights)):
        samples, rows = block_sizes(
            model, method, tf.constant(50), tf.constant(num_samples), 2, max_floats
        )
        assert 1 <= samples <= num_samples
        assert rows >= 1
        # Some row of every sample is the least that a block can hold.
        assert samples * drawn <= max_floats or samples == 1
        assert rows * samples * 30 <= max_floats or rows == 1
        # The outputs of all samples, in float64, meet for their summary.
        assert rows * num_samples * 2 * 2 <= max_floats or rows == 1


def test_methods_that_draw_no_weights_take_more_samples_at_a_time(model):
    local, _ = block_sizes(
        model, "local", tf.constant(50), tf.constant(10**6), 2, 10**5
    )
    weight, _ = block_sizes(
        model, "weight", tf.constant(50), tf.constant(10**6), 2, 10**5
    )
    assert local > weight


def test_weights_are_drawn_once_for_all_rows_rather_than_for_all_samples(model):
    # 692 weights a sample, and 4 * 50 floats a row and sample, within 10^6.
    samples, rows = block_sizes(
        model, "weight", tf.constant(150), tf.constant(100), 2, 10**6
    )
    assert int(rows) == 150
    assert int(samples) == 10**6 // (692 + 150 * 200)


def test_block_too_small_for_anything_holds_one_row_of_one_sample(model):
    samples, rows = block_sizes(model, "weight", tf.constant(9), tf.constant(50), 2, 1)
    assert (int(samples), int(rows)) == (1, 1)
