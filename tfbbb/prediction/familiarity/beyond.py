"""How far targets may change beyond the training rows, but for an amplitude."""

import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.prediction.familiarity.familiarity import LEAST_ROWS, Familiarity


def deviation_beyond(
    familiarity: Familiarity, locations: Tensor, rows: Tensor
) -> tf.Tensor:
    """Returns the deviation of locations that no training row tells, float32 [n, k].

    `spread sqrt(log(max(1, exceedance)))`: see `tfbbb.Extrapolation`.

    Args:
        familiarity: What is known of the training rows.
        locations: The locations of its representatives, [m, k].
        rows: Encoded rows, [n, p].
    """
    distances, places = familiarity.nearest(rows, LEAST_ROWS)
    exceedance = familiarity.exceedance(rows, distances, places)
    growth = tf.sqrt(tf.math.log(tf.maximum(exceedance, 1.0)))
    spread = tf.math.reduce_std(tf.gather(locations, places), axis=1)
    return spread * growth[:, tf.newaxis]
