"""Training on two logical CPUs, for a process of its own."""

import numpy as np
import tensorflow as tf

from tests.keras_programs.twins import copy_weights, regression, twins

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(41, 3)).astype("float32")
Y = X[:, :1] - 0.3 * RANDOM.normal(size=(41, 1)).astype("float32")


def two_replicas():
    """Returns weights after training on two logical CPUs, and on one."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model, _ = twins(regression, run_eagerly=False, jit_compile=False)
    single, twin = twins(regression)
    copy_weights(model, single)
    copy_weights(model, twin)
    figures = {}
    for name, each in (("two", model), ("one", single), ("keras", twin)):
        # In the last batch there is one row, so that a replica has none.
        each.fit(X, Y, batch_size=8, shuffle=False, epochs=2, verbose=0)
        figures[name] = [weight.numpy() for weight in each.trainable_variables]
    return figures, model.num_rows
