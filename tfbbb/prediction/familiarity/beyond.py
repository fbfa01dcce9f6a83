"""How far rows are beyond the training rows."""

import numpy as np
import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.prediction.familiarity.familiarity import LEAST_ROWS, Familiarity


def compare_beyond(
    familiarity: Familiarity,
    locations: Tensor,
    rows: Tensor,
    missing: Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the familiarity of rows, and the deviation that no training row tells.

    The deviation is `spread sqrt(log(max(1, exceedance)))`: see `tfbbb.Extrapolation`.

    Args:
        familiarity: What is known of the training rows.
        locations: The locations of its representatives, [m, k].
        rows: Encoded rows, [n, p'].
        missing: Which cells are missing, [n, p]; they do not make a row farther. None
            if none is.

    Returns:
        float32 [n] and [n, k].
    """
    distances, places = familiarity.nearest(rows, LEAST_ROWS)
    scores = familiarity.scores(rows, distances, places)
    of_known = scores
    if missing is not None:
        of_known = familiarity.scores_of_known(rows, places, missing)
    exceedance = familiarity.exceedance(of_known)
    growth = tf.sqrt(tf.math.log(tf.maximum(exceedance, 1.0)))
    spread = tf.math.reduce_std(tf.gather(locations, places), axis=1)
    return familiarity.of_scores(scores), spread * growth[:, tf.newaxis]


def outside_ranges(familiarity: Familiarity, rows: Tensor) -> tf.Tensor:
    """Returns how far each number is outside its range, for slopes of 1, as a variance.

    It is `r + r^2`, where r is how far the number lies outside the range of the
    training rows, in units of the range: the variance of a Brownian motion of unknown
    slope. It is 0 of texts and of numbers that do not vary.

    Args:
        familiarity: What is known of the training rows.
        rows: Encoded rows, [n, p'].

    Returns:
        float32 [n, p], of columns before they are encoded.
    """
    values, (least, most) = familiarity.encoding.decode(rows), familiarity.ranges()
    outside = tf.maximum(tf.maximum(least - values, values - most), 0.0)
    relative = tf.cast(tf.math.divide_no_nan(outside, most - least), tf.float32)
    relative = tf.where(familiarity.encoding.is_text, np.float32(0.0), relative)
    return relative + tf.square(relative)
