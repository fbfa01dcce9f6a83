"""The importance-weighted bound of the log evidence."""

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfbbb.base import noise
from tfbbb.base.numbers import int32
from tfbbb.base.types import ArrayLike, Structure, Tensor
from tfbbb.inference.batches import Batches
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.lab.evidence.estimate import EvidenceEstimate, check_density
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.structure import widest_output

# 64 MB of float32 flow through the network at a time.
_MAX_FLOATS = 1 << 24


def importance_weighted_bound(
    model: BayesianModel,
    x: Structure,
    y: ArrayLike = None,
    *,
    importance_samples: int = 50,
    repetitions: int = 20,
    sample_weight: ArrayLike = None,
    batch_size: int = 256,
    seed: int = 0,
) -> EvidenceEstimate:
    """Returns the importance-weighted bound of log p(y) of K draws.

        L_K = E[log (1/K) sum_k p(y | w_k) p(w_k) / q(w_k)],    w_k ~ q

    L_1 is the evidence lower bound, L_K grows with K, and its limit is log p(y) (Burda,
    Grosse and Salakhutdinov 2016, theorem 1). The estimate is the mean over repetitions
    with draws of their own. With one seed and one product of K and repetitions the
    draws are the same, so that estimates with multiples of K grow, too.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> rows = np.array([[1.0], [2.0]])
    >>> one, ten = (
    ...     tfbbb.lab.evidence.importance_weighted_bound(
    ...         model, rows, rows, importance_samples=k, repetitions=100 // k
    ...     )
    ...     for k in (1, 10)
    ... )
    >>> one.value < ten.value
    True

    Args:
        model: A model with one member and a posterior with a density.
        x: Inputs of the training rows, or a dataset, as `BayesianModel.fit` takes them.
        y: Targets in raw units.
        importance_samples: Number K of draws in the bound.
        repetitions: Number of estimates that are averaged, at least 2.
        sample_weight: Weight of each row: the number of rows that it counts as.
        batch_size: Rows at a time.
        seed: Seed of the draws.

    Returns:
        The bound in nats, its standard error, and as diagnostics the
        `effective_sample_size` of all draws as importance samples of the posterior.

    Raises:
        ValueError: The model has several members or point posteriors or is
            recalibrated, or a number is out of range.
    """
    count = int32("importance_samples", importance_samples, least=1)
    repeats = int32("repetitions", repetitions, least=2)
    ratio = _LogRatio(model)
    batches = Batches(x, y, sample_weight, batch_size)
    log_likelihood = tf.function(ratio.log_likelihood, reduce_retracing=True)
    total = count * repeats
    block = max(1, _MAX_FLOATS // (batch_size * widest_output(model)))
    logs = []
    for first in range(0, total, block):
        number = min(block, total - first)
        source = noise.fold(tf.constant([0, int32("seed", seed)]), 1)
        vectors = noise.normal_block(source, first, number, [ratio.size])
        values = ratio.values(vectors)
        found = ratio.log_weights(values)
        for inputs, targets, weights in batches:
            found += log_likelihood(values, inputs, targets, weights)
        logs.append(found.numpy())
    ratios = np.concatenate(logs)
    estimates = _log_mean_exp(ratios.reshape(repeats, count))
    shares = np.exp(ratios - ratios.max())
    return EvidenceEstimate(
        float(estimates.mean()),
        float(estimates.std(ddof=1) / math.sqrt(repeats)),
        {"effective_sample_size": float(shares.sum() ** 2 / np.square(shares).sum())},
    )


class _LogRatio:
    """`log p(y | w) + log p(w) - log q(w)` as a function of the noise behind w ~ q."""

    def __init__(self, model: BayesianModel):
        check_density(model)
        self.network = NetworkFunction(model)
        self._shapes = [
            weight.posterior.noise_shape(weight.shape)
            for weight in self.network.weights
        ]
        self._sizes = [int(np.prod(shape)) for shape in self._shapes]
        self.size = sum(self._sizes)

    def values(self, vectors: Tensor) -> list[tf.Tensor]:
        """Returns weights as functions of noise [K, size], [K, *shape] each."""
        parts = tf.split(vectors, self._sizes, axis=-1)
        return [
            weight.draw_from(tf.reshape(part, [-1, *shape]))
            for weight, part, shape in zip(
                self.network.weights, parts, self._shapes, strict=True
            )
        ]

    def log_weights(self, values: Sequence[Tensor]) -> tf.Tensor:
        """Returns log p(w) - log q(w), [K], float64."""
        total = self.network.log_prior(values)
        for weight, value in zip(self.network.weights, values, strict=True):
            total -= tf.reshape(weight.log_prob(value), [-1])
        return tf.cast(total, tf.float64)

    def log_likelihood(
        self, values: Sequence[Tensor], x: Structure, y: Tensor, weights: Tensor
    ) -> tf.Tensor:
        """Returns the weighted log likelihood of some rows, [K], float64."""
        per_row = tf.cast(self.network.log_likelihood(values, x, y), tf.float64)
        return tf.reduce_sum(per_row * tf.cast(weights, tf.float64), axis=1)


def _log_mean_exp(logs: np.ndarray) -> np.ndarray:
    """Returns the log of the mean of `exp(logs)` over the last axis."""
    greatest = logs.max(axis=-1)
    shares = np.exp(logs - greatest[:, np.newaxis])
    return np.asarray(greatest + np.log(shares.mean(axis=-1)))
