"""Stochastic weight averaging, Gaussian (SWAG)."""

from collections import deque
from typing import Any

import keras
import numpy as np

from tfbbb.base.numbers import positive_integer, positive_number
from tfbbb.base.types import Logs
from tfbbb.bayes.posteriors import LowRankNormal
from tfbbb.inference.batches import Batches
from tfbbb.inference.gradient_training import GradientTraining
from tfbbb.inference.method import refuse_batch_normalization, require_some_priors
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior

# The variance of a weight that never moved, such as one behind a dead unit.
_SMALLEST_VARIANCE = 1e-16


class SWAG(GradientTraining):
    """A normal through the iterates of gradient descent (Maddox et al. 2019).

    From the weights of a trained model, gradient descent at a constant rate moves
    around the mode. With the weights w_t after each epoch t,

        q(w) = N(mean_t w_t, (V + D D^T / (rank - 1)) / 2),   V = diag(var_t w_t)

    where the columns of D are the deviations of the last `rank` epochs from the mean
    until then. Returns `low_rank_normal` posteriors. They are one per weight tensor, so
    the correlations between tensors are left out. The width depends on the learning
    rate and the batch size, which the posterior does not know.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> mode = tfbbb.inference.MAP(epochs=2).fit(
    ...     network, x, 3.0 * x, likelihood="normal", verbose=0
    ... )
    >>> model = tfbbb.inference.SWAG(rank=3, epochs=5).fit(mode, x, 3.0 * x, verbose=0)
    >>> model.variational_layers[0].posterior.rank
    3

    Args:
        rank: Number of columns of D, at least 2.
        epochs: Number of passes over the rows, at least `rank`.
        learning_rate: The constant learning rate.
        momentum: The momentum of the steps.

    Raises:
        ValueError: An argument is out of range, or there are fewer epochs than `rank`.
    """

    def __init__(
        self,
        rank: int = 10,
        epochs: int = 40,
        batch_size: int = 32,
        learning_rate: float = 0.01,
        momentum: float = 0.9,
    ):
        super().__init__(epochs, batch_size, learning_rate)
        self.rank = positive_integer("rank", rank)
        if not 2 <= rank <= epochs:
            raise ValueError(
                "`rank` must be at least 2 and at most `epochs`: each column is the "
                f"deviation of one epoch. Received: rank={rank}, epochs={epochs}"
            )
        self.momentum = momentum and positive_number("momentum", momentum)

    def _start(self, model: BayesianModel) -> BayesianModel:
        refuse_batch_normalization(self, model)
        require_some_priors(
            self, model, "gives each weight a normal posterior, which takes a prior"
        )
        return super()._start(model)

    def _optimizer(self, batches: Batches) -> keras.optimizers.Optimizer:
        return keras.optimizers.SGD(self.learning_rate, momentum=self.momentum)

    def _callbacks(self, points: BayesianModel) -> list[keras.callbacks.Callback]:
        return [_Moments(points, self.rank)]

    def _posterior(
        self, points: BayesianModel, optimizer: Any, *callbacks: Any
    ) -> BayesianModel:
        (moments,) = callbacks
        moments.set_learned()
        result = with_posterior(points, LowRankNormal(rank=self.rank))
        network = NetworkFunction(result)
        columns = np.stack(moments.deviations, axis=-1)
        factors = np.split(columns, np.cumsum(network.sizes)[:-1])
        of_weights = (
            network.split(values[np.newaxis])
            for values in (moments.mean, 0.5 * np.log(0.5 * moments.variance))
        )
        scale = np.sqrt(2.0 * (self.rank - 1))
        for weight, mean, log_scale, factor in zip(
            network.weights, *of_weights, factors, strict=True
        ):
            weight.variables["mean"].assign(mean[0])
            weight.variables["log_scale"].assign(log_scale[0])
            factor = factor.reshape(*weight.shape, self.rank) / scale
            weight.variables["factor"].assign(factor)
        return result


class _Moments(keras.callbacks.Callback):
    """The moments of the weights after each epoch, in double precision."""

    def __init__(self, points: BayesianModel, rank: int):
        super().__init__()
        self._network = NetworkFunction(points)
        self._learned = points.likelihood.learned_variables
        self._learned_sums = [np.zeros(v.shape) for v in self._learned]
        self._count = 0
        self.mean = np.zeros(self._network.size)
        self._squares = np.zeros(self._network.size)
        self.deviations: deque[np.ndarray] = deque(maxlen=rank)

    @property
    def variance(self) -> np.ndarray:
        """The variance of each weight over the epochs, [D]."""
        return np.maximum(self._squares / self._count, _SMALLEST_VARIANCE)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        vector = self._network.means()[0].astype(np.float64)
        self._count += 1
        # Welford 1962: a difference of squares would lose the digits.
        before = vector - self.mean
        self.mean = self.mean + before / self._count
        self._squares += before * (vector - self.mean)
        self.deviations.append(vector - self.mean)
        for total, variable in zip(self._learned_sums, self._learned, strict=True):
            total += variable.numpy()

    def set_learned(self) -> None:
        """Sets the likelihood's learned parameters to their means over the epochs."""
        for total, variable in zip(self._learned_sums, self._learned, strict=True):
            variable.assign(total / self._count)
