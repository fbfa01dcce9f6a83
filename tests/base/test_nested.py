"""Structures are flattened and mapped as TensorFlow does."""

import collections

import pytest
import tensorflow as tf

from tfbbb.base.nested import leaves, map_leaves

Pair = collections.namedtuple("Pair", ["one", "other"])
NESTED = [{"b": [2, (3, None)], "a": Pair(1, {"z": 5, "y": 4})}, []]


def test_leaves_are_in_the_order_of_tensorflow():
    assert leaves(NESTED) == tf.nest.flatten(NESTED)


def test_a_mapped_structure_is_that_of_the_first():
    found = map_leaves(lambda *x: x, NESTED, NESTED)
    assert found == tf.nest.map_structure(lambda *x: x, NESTED, NESTED)
    assert isinstance(found[0]["a"], Pair)


@pytest.mark.parametrize("other", [{"b": 1}, [1], 3, {"a": [1, 2]}])
def test_structures_that_differ_are_refused(other):
    with pytest.raises(ValueError, match="The structures differ"):
        map_leaves(lambda *x: x, {"a": [1]}, other)
