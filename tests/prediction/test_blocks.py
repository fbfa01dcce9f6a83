import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tfbbb.layers import DenseVariational
from tfbbb.prediction.blocks import block_sizes, map_blocks, reduce_blocks
from tfbbb.prediction.passes import Sizes
from tfbbb.prediction.plan import plan_for
from tfbbb.prediction.structure import Structure


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


@settings(max_examples=30, deadline=None, derandomize=True)
@given(total=st.integers(1, 12), block=st.integers(1, 15))
def test_blocks_are_merged_into_one(total, block):
    values = tf.range(total, dtype=tf.float32)

    def compute(first, count):
        part = values[first : first + count]
        return {"sum": tf.reduce_sum(part), "greatest": tf.reduce_max(part)}

    def merge(one, other):
        return {
            "sum": one["sum"] + other["sum"],
            "greatest": tf.maximum(one["greatest"], other["greatest"]),
        }

    found = reduce_blocks(compute, merge, tf.constant(total), tf.constant(block))
    assert float(found["sum"]) == total * (total - 1) / 2
    assert float(found["greatest"]) == total - 1


@pytest.fixture(scope="module")
def structure():
    layers = [DenseVariational(units, kl_weight=0.1) for units in (30, 2)]
    return Structure(keras.Sequential([keras.Input((20,)), *layers]))


def sizes(structure, method, num_rows, num_rounds, max_floats):
    plan = plan_for(structure, method, 1, 100, max_floats)
    of_pass = Sizes(
        members=structure.members,
        widest=structure.widest,
        outputs=2,
        drawn=plan.floats_per_draw(structure),
    )
    found = block_sizes(of_pass, num_rows, num_rounds, max_floats)
    in_graph = block_sizes(
        of_pass,
        tf.constant(num_rows),
        tf.constant(num_rounds),
        max_floats,
        tf.minimum,
        tf.maximum,
    )
    assert found == tuple(map(int, in_graph))
    return found


@pytest.mark.parametrize("num_rounds", [2, 50, 10**6])
@pytest.mark.parametrize("max_floats", [10**4, 10**6, 2**26])
def test_blocks_hold_no_more_than_they_may(structure, num_rounds, max_floats):
    num_weights = 20 * 30 + 30 + 30 * 2 + 2
    for method, drawn in (("local", 32), ("weight", num_weights)):
        rows, rounds = sizes(structure, method, 50, num_rounds, max_floats)
        assert 1 <= rounds <= num_rounds
        assert 1 <= rows <= 50
        # One row in one round is the least that a block can hold; the widest tensor is
        # the kernel's, and the outputs are in float64.
        flowing = 2 * rounds * rows * 4 * (50 + 2 * 2)
        assert 2 * rounds * drawn + flowing <= max_floats or rows * rounds == 1






def test_smallest_block_holds_one_row_of_one_round(structure):
    assert sizes(structure, "weight", 9, 50, 1) == (1, 1)
