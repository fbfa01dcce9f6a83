"""An increasing, piecewise linear function."""

import numpy as np
import tensorflow as tf


class PiecewiseLinear:
    """Interpolates linearly between knots and extrapolates beyond them.

    The extrapolation is parallel to the line between the first and the last knot.

    Example:

    >>> import tensorflow as tf
    >>> function = PiecewiseLinear([0.0, 1.0, 2.0], [0.0, 3.0, 4.0])
    >>> function(tf.constant([-1.0, 0.5, 1.5, 3.0])).numpy()
    array([-2. ,  1.5,  3.5,  6. ], dtype=float32)
    >>> function.inverse(tf.constant([1.5, 6.0])).numpy()
    array([0.5, 3. ], dtype=float32)

    Args:
        places: Positions of the knots, [m], increasing; empty for the identity.
        values: Values at the knots, [m], increasing.
    """

    def __init__(self, places: np.ndarray, values: np.ndarray):
        self.places = np.asarray(places, dtype=np.float64)
        self.values = np.asarray(values, dtype=np.float64)
        if not len(self.places):
            self.places = self.values = np.array([0.0, 1.0])

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return _through(x, self.places, self.values)

    def inverse(self, y: tf.Tensor) -> tf.Tensor:
        return _through(y, self.values, self.places)

    def slope(self, x: tf.Tensor) -> tf.Tensor:
        slopes = _slopes(self.places, self.values)
        beyond = x[..., tf.newaxis] > tf.constant(self.places, x.dtype)
        steps = tf.constant(np.diff(slopes), x.dtype)
        return slopes[0] + tf.reduce_sum(tf.where(beyond, steps, 0.0), axis=-1)


def _through(x: tf.Tensor, places: np.ndarray, values: np.ndarray) -> tf.Tensor:
    slopes = _slopes(places, values)
    beyond = tf.nn.relu(x[..., tf.newaxis] - tf.constant(places, x.dtype))
    bends = tf.linalg.matvec(beyond, tf.constant(np.diff(slopes), x.dtype))
    return values[0] + slopes[0] * (x - places[0]) + bends


def _slopes(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns the slopes before, between and after the knots, [m + 1]."""
    outside = (values[-1] - values[0]) / (places[-1] - places[0])
    return np.array([outside, *np.diff(values) / np.diff(places), outside])
