"""The devices that a training uses, and the rows of each of them."""

from functools import cache

import tensorflow as tf


def training_strategy(devices: str) -> tf.distribute.Strategy:
    """Returns the strategy in whose scope to make the network of a training."""
    usable = usable_devices()
    if devices == "one" or len(usable) == 1:
        return tf.distribute.get_strategy()
    return _mirrored(*(device.name for device in usable))


@cache
def _mirrored(*names: str) -> tf.distribute.Strategy:
    # Two strategies of the same devices number their sums alike, and TensorFlow then
    # takes one for the other: a process has one strategy for all its trainings.
    return tf.distribute.MirroredStrategy(list(names))


def usable_devices() -> "list[tf.config.LogicalDevice]":
    """Returns the GPUs that TensorFlow sees, or the CPUs if it sees none."""
    devices: list[tf.config.LogicalDevice] = tf.config.list_logical_devices("GPU")
    return devices or tf.config.list_logical_devices("CPU")


def describe_devices(devices: str) -> str:
    """Returns a phrase for the reports of a training; empty for `"one"`."""
    if devices == "one":
        return ""
    usable = usable_devices()
    kind = usable[0].device_type
    if len(usable) == 1:
        return f"on one {kind}, as TensorFlow sees no other device"
    return f"on {len(usable)} {kind}s, which share the rows of each batch"
