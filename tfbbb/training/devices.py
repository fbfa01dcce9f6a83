"""The devices that a training uses, and the rows of each of them."""

from collections.abc import Callable
from functools import cache

import tensorflow as tf

from tfbbb.base.types import Structure


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


def run_on_replicas(
    strategy: tf.distribute.Strategy,
    step: Callable[[Structure], object],
    batch: Structure,
) -> None:
    """Runs a step on each replica of a strategy, with its part of the batch's rows.

    The parts differ by at most one row; the last parts are the larger ones, and a part
    of a batch with fewer rows than replicas may be empty.
    """
    number = strategy.num_replicas_in_sync
    if number == 1:
        step(batch)
        return

    def run_part() -> None:
        context = tf.distribute.get_replica_context()
        index = tf.cast(context.replica_id_in_sync_group, tf.int32)

        def part(tensor: tf.Tensor) -> tf.Tensor:
            rows = tf.shape(tensor)[0]
            return tensor[rows * index // number : rows * (index + 1) // number]

        step(tf.nest.map_structure(part, batch))

    strategy.run(run_part)
