"""Predictions from moments that are propagated through the network, without draws."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb import noise
from tfbbb.fold import merge_leading
from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.moments import Operation, operations, output_moments, prepared
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.program import Program
from tfbbb.prediction.summary import Sums, summary
from tfbbb.recalibration.recalibration import IDENTITY, Recalibration

# Nodes and their mirror images, at which a likelihood is averaged over its outputs.
_NUM_NODES = 64
# Dimensions of the largest Sobol sequence that TensorFlow has.
_MOST_DIMENSIONS = 1111


class PropagatedProgram(Program):
    """The functions of a prediction whose outputs are known by mean and variance.

    The outputs are taken as independent normals. A likelihood that can integrates those
    that are its mean; over all others it is averaged at the nodes of a fixed quadrature
    (a Sobol sequence under the inverse of the normal distribution function, with its
    mirror image), which stand where a sampler has its draws.
    """

    def __init__(
        self,
        model: keras.Model,
        likelihoods: Sequence[Likelihood],
        plan: Plan,
        inputs: Any,
        recalibration: Recalibration = IDENTITY,
    ):
        # Before anything else: it names what has no closed form.
        self.operations: tuple[Operation, ...] = operations(model)
        super().__init__(model, likelihoods, plan, inputs, recalibration)

    def num_integrated(self, likelihood: Likelihood, num_outputs: int) -> int:
        if not likelihood.integrates_location:
            return 0
        return num_outputs // likelihood.num_outputs(1)

    def rounds(
        self, num_samples: Any, greatest: Callable[[Any, Any], Any] = max
    ) -> int:
        """Returns the number of nodes, whatever number of samples is asked for."""
        return _NUM_NODES

    def moments(self) -> Tensors:
        return {"prepared": prepared(self.model)}

    def draws(self, seed: Any, first: Any, count: Any) -> Tensors:
        return {"source": {"count": count}}

    def outputs(self, inputs: Any, moments: Tensors, draws: Tensors) -> list[Any]:
        pairs = output_moments(self.model, inputs, moments["prepared"])
        if len(self.likelihoods) == 1:
            pairs = [pairs]
        flat = tree.flatten(pairs)
        return [
            self._at_nodes(likelihood, mean, variance)
            for likelihood, mean, variance in zip(
                self.likelihoods, flat[::2], flat[1::2], strict=True
            )
        ]

    def summary(self, found: Sums) -> dict[str, tf.Tensor]:
        return summary(found, drawn=False)

    def _at_nodes(self, likelihood: Likelihood, mean: Any, variance: Any) -> tf.Tensor:
        """Returns the outputs at the nodes, of moments [K, rows, ..., P]."""
        mean, variance = mean[:, tf.newaxis], variance[:, tf.newaxis]
        width = mean.shape[-1]
        integrated = self.num_integrated(likelihood, width)
        nodes = _nodes(width - integrated)
        nodes = tf.concat([tf.zeros([2 * _NUM_NODES, integrated]), nodes], axis=1)
        ones = [1] * (len(mean.shape) - 3)
        nodes = tf.reshape(nodes, [2 * _NUM_NODES, *ones, width])
        outputs = merge_leading(mean + tf.sqrt(variance) * nodes)
        location_variance = None
        if integrated:
            of_mean = variance[..., :integrated] * tf.ones_like(nodes[..., :integrated])
            location_variance = merge_leading(of_mean)
        return self._completed(likelihood, outputs, location_variance)


def _nodes(dimensions: int) -> np.ndarray:
    """Returns standard normal nodes and their mirror images, [nodes, dimensions].

    Their means are 0 and, where there are enough of them, their covariances those of
    independent standard normals, so that quadratic functions are averaged exactly.
    """
    if not dimensions:
        return np.zeros([2 * _NUM_NODES, 0], np.float32)
    with tf.init_scope():
        if dimensions <= _MOST_DIMENSIONS:
            # The sequence begins at 0, which has no finite quantile.
            uniform = tf.math.sobol_sample(dimensions, _NUM_NODES, skip=1)
            nodes = tf.math.ndtri(tf.cast(uniform, tf.float64)).numpy()
        else:
            nodes = noise.normal([0, 0], [_NUM_NODES, dimensions]).numpy()
    if 2 * dimensions <= _NUM_NODES:
        variances, axes = np.linalg.eigh(nodes.T @ nodes / _NUM_NODES)
        nodes = nodes @ (axes / np.sqrt(variances)) @ axes.T
    return np.concatenate([nodes, -nodes]).astype(np.float32)
