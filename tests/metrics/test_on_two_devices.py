"""Metrics of predictive distributions under `tf.distribute.MirroredStrategy`."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest


def one_and_two_devices():
    """Returns metrics by one and by two logical CPUs, in a process of its own."""
    import tensorflow as tf

    devices = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        devices[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    from tests.metrics.test_in_keras import NUMBERS, Y, evaluated, of_numbers

    def chosen():
        return [metric(name=name) for name, (metric, _) in NUMBERS.items()]

    one = of_numbers(2)
    expected = evaluated(one, chosen(), Y)
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = of_numbers(2)
        # In the last batch of 9 rows the replicas have 5 and 4.
        model.set_weights(one.get_weights())
        return expected, evaluated(model, chosen(), Y), list(NUMBERS)


def test_two_devices_give_the_metrics_of_one():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        expected, found, names = executor.submit(one_and_two_devices).result()
    for name in names:
        assert found[name] == pytest.approx(expected[name], rel=1e-4)
