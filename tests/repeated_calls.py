"""A function's results over many calls, as tests of draws need them."""

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf


@contextmanager
def running_functions(*, eagerly: bool) -> Iterator[None]:
    """Runs the functions of TensorFlow op by op, or compiles them."""
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(eagerly)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


@running_functions(eagerly=False)
def repeated(function, number):
    """Returns the stacked results of `function()` as arrays, one for each of its calls.

    One graph makes all calls, so that none waits for Python. They draw the numbers that
    as many calls of a `tf.function` would.
    """
    call = tf.function(function).get_concrete_function()
    results = tf.nest.map_structure(tf.TensorSpec.from_tensor, call.structured_outputs)

    @tf.function(autograph=False)
    def calls():
        return tf.map_fn(
            lambda _: call(),
            tf.range(number),
            fn_output_signature=results,
            parallel_iterations=1,
        )

    return tf.nest.map_structure(lambda stacked: stacked.numpy(), calls())
