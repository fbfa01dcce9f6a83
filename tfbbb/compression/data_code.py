"""How many bits targets take, given inputs and weights."""

import math
from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.prediction import Predictive


def data_bits(prediction: Predictive, y: Any) -> tuple[float, float]:
    """Returns `E_q sum_i -log2 p(y_i | x_i, w)` and its standard error, in bits.

    Unlike `Predictive.log_prob`, which is the log of an average over the draws, it is
    the average of a log: with bits back, sender and receiver use one draw.

    Args:
        prediction: The prediction of all rows, from draws w ~ q.
        y: Their targets, in raw units.

    Raises:
        ValueError: Where `y` are not the targets of those rows.
    """
    likelihood = prediction._likelihood
    targets = likelihood.check_targets(y)
    if len(targets) != len(prediction):
        raise ValueError(
            "There must be one row of targets for each row of inputs. "
            f"Received: {len(prediction)} rows of x, {len(targets)} of y"
        )

    def nats(outputs: Any, targets: np.ndarray) -> tf.Tensor:
        outputs = tf.cast(outputs, tf.float64)
        log_prob = likelihood.log_prob(targets[:, np.newaxis], outputs)
        # A row may have several places, each with targets of its own.
        places = list(range(2, len(log_prob.shape)))
        return -tf.reduce_sum(log_prob, axis=places)

    per_draw = prediction._of_blocks(nats, targets).sum(axis=0) / math.log(2)
    error = per_draw.std(ddof=1) / math.sqrt(len(per_draw))
    return float(per_draw.mean()), float(error)
