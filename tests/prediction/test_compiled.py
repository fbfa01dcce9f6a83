"""Functions run op by op until a trace pays."""

import numpy as np
import pytest
import tensorflow as tf

from tfbbb.prediction.compiled import compiled_if_repeated, traced


@pytest.mark.usefixtures("compiled_functions")
@pytest.mark.parametrize(
    ("numbers", "op_by_op"),
    [(0.0, 15), (2_000_000.0, 7), (1e9, 0)],
    ids=["small", "as large as a call", "large"],
)
def test_a_function_is_compiled_where_a_trace_pays(numbers, op_by_op):
    ways = []

    def square(x):
        ways.append("op by op" if tf.executing_eagerly() else "trace")
        return {"square": [tf.square(x), x]}

    spec = tf.TensorSpec([None], tf.float32)
    call = compiled_if_repeated(square, lambda: traced(square, spec), lambda x: numbers)
    for number in range(20):
        found = call(tf.constant([1.0, number]))["square"]
        np.testing.assert_array_equal(found[0], [1.0, number**2])
        np.testing.assert_array_equal(found[1], [1.0, number])
    assert ways == ["op by op"] * op_by_op + ["trace"]
