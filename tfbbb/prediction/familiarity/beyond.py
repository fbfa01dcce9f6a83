"""How far targets may change beyond the training rows, but for an amplitude."""

import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.prediction.familiarity.familiarity import LEAST_ROWS, Familiarity


def compare_beyond(
    familiarity: Familiarity, locations: Tensor, rows: Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the familiarity of rows, and the deviation that no training row tells.

    The deviation is `spread sqrt(log(max(1, exceedance)))`: see `tfbbb.Extrapolation`.

    Args:
        familiarity: What is known of the training rows.
        locations: The locations of its representatives, [m, k].
        rows: Encoded rows, [n, p].

    Returns:
        float32 [n] and [n, k].
    """
    distances, places = familiarity.nearest(rows, LEAST_ROWS)
    scores = familiarity.scores(rows, distances, places)
    exceedance = familiarity.exceedance(scores)
    growth = tf.sqrt(tf.math.log(tf.maximum(exceedance, 1.0)))
    spread = tf.math.reduce_std(tf.gather(locations, places), axis=1)
    return familiarity.of_scores(scores), spread * growth[:, tf.newaxis]
