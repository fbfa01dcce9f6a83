"""Rankings of weights by their importance, resolvable by string name."""

from typing import TYPE_CHECKING

import keras
import numpy as np

from tfbbb.base.strategy import Registry, Strategy
from tfbbb.bayes.signal_to_noise import signal_to_noise

if TYPE_CHECKING:
    from tfbbb.bayes.variational_weight import VariationalWeight


class Ranking(Strategy):
    """Computes the importance of weights; the least important is removed first."""

    def importance(self, weight: "VariationalWeight") -> np.ndarray:
        """Returns the importance of each weight, at least 0; 0 for removed weights.

        Args:
            weight: A weight tensor of a variational layer.

        Returns:
            float64, of the weight's shape (with members [members, *shape]).
        """
        raise NotImplementedError


@keras.saving.register_keras_serializable(package="tfbbb.compression")
class SignalToNoise(Ranking):
    """`|mean| / stddev` (Blundell et al. 2015).

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(1, kernel_initializer="ones")
    >>> layer.build((None, 1))
    >>> tfbbb.compression.SignalToNoise().importance(layer.kernel)
    array([[50.]])
    """

    def importance(self, weight: "VariationalWeight") -> np.ndarray:
        return signal_to_noise(weight)


@keras.saving.register_keras_serializable(package="tfbbb.compression")
class DensityRatio(Ranking):
    """`log q(mean) / q(0) = mean^2 / (2 stddev^2)`, in nats (Graves 2011).

    Graves removes the weights whose `q(0) / q(mean) = exp(-mean^2 / (2 stddev^2))`
    exceeds a threshold lambda, that is, whose importance is below `-log(lambda)`. This
    importance is half the square of the signal-to-noise ratio, so both rankings have
    the same order and differ only in the unit of a threshold.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(1, kernel_initializer="ones")
    >>> layer.build((None, 1))
    >>> tfbbb.compression.DensityRatio().importance(layer.kernel)
    array([[1250.]])
    """

    def importance(self, weight: "VariationalWeight") -> np.ndarray:
        return 0.5 * signal_to_noise(weight) ** 2


_registry = Registry(
    Ranking, {"density_ratio": DensityRatio, "signal_to_noise": SignalToNoise}
)
get, serialize, deserialize = (
    _registry.get,
    _registry.serialize,
    _registry.deserialize,
)
