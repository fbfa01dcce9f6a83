"""Training data as an endless stream of shuffled batches."""

import numpy as np
import tensorflow as tf


def shuffled_batches(
    inputs: np.ndarray | dict[str, np.ndarray],
    targets: np.ndarray,
    batch_size: int,
    *,
    seed: int,
) -> tf.data.Dataset:
    """Makes batches of rows, in a new order at each pass, without end.

    Only indices are shuffled, so that wide tables cost no more than narrow ones. As
    there is no end, Keras does not start anew at each epoch, which takes longer than
    an epoch over a small table.

    Args:
        inputs: An array `[n, d]`, or a dictionary of arrays `[n]`.
        targets: Targets `[n, ...]`.
        batch_size: Rows per batch; the last batch of a pass has what is left.
        seed: Seed of the orders.

    Returns:
        A dataset of `(inputs, targets)`. Pass `steps_per_epoch` and
        `dataset_size=n` to `BayesianModel.fit`.

    Example:

    >>> import numpy as np
    >>> batches = shuffled_batches(np.eye(3), np.arange(3), batch_size=2, seed=0)
    >>> [len(targets) for _, targets in batches.take(4)]
    [2, 1, 2, 1]
    """
    rows = tf.nest.map_structure(tf.constant, (inputs, targets))
    num_rows = len(targets)

    def batches_of_pass(number: tf.Tensor) -> tf.data.Dataset:
        # A function of seed and pass: `Dataset.shuffle` keeps a state, which a second
        # iterator would move on.
        order = tf.random.experimental.stateless_shuffle(
            tf.range(num_rows), seed=tf.stack([tf.cast(seed, tf.int64), number])
        )
        return tf.data.Dataset.from_tensor_slices(order).batch(batch_size)

    return (
        tf.data.Dataset.counter()
        .flat_map(batches_of_pass)
        .map(lambda batch: tf.nest.map_structure(lambda x: tf.gather(x, batch), rows))
        .prefetch(tf.data.AUTOTUNE)
    )
