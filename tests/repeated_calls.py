"""A function's results over many calls, as tests of draws need them."""

import tensorflow as tf


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
