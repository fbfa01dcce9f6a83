"""Structures are flattened and mapped as TensorFlow does."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tfbbb.base.array_library import numpy_of, special_of
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


def test_arrays_and_tensors_have_functions_of_one_name():
    x = np.array([0.2, 0.7])
    assert numpy_of(x, 1.0) is np
    for values in (x, tf.constant(x)):
        xp, special = numpy_of(values), special_of(values)
        np.testing.assert_allclose(xp.sqrt(values), np.sqrt(x))
        np.testing.assert_allclose(special.ndtri(values), [-0.841621, 0.524401], 1e-5)
