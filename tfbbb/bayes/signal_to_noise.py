"""The signal-to-noise ratio of weights."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tfbbb.bayes.variational_weight import VariationalWeight


def signal_to_noise(weight: "VariationalWeight") -> np.ndarray:
    """Returns `|mean| / stddev` of each weight under q (Blundell et al. 2015).

    The ratio of a weight without variance is infinite, or 0 if the weight is exactly 0.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(2, kernel_initializer="ones")
    >>> layer.build((None, 1))
    >>> layer.kernel.stddev.numpy()
    array([[0.02, 0.02]], dtype=float32)
    >>> tfbbb.compression.signal_to_noise(layer.kernel)
    array([[50., 50.]])

    Args:
        weight: A weight tensor of a variational layer.

    Returns:
        float64, of the weight's shape (with members [members, *shape]).
    """
    mean = np.abs(np.asarray(weight.mean, np.float64))
    stddev = np.asarray(weight.stddev, np.float64)
    ratio = np.zeros_like(mean)
    with np.errstate(divide="ignore"):
        return np.divide(mean, stddev, out=ratio, where=mean != 0)
