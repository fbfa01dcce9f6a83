"""Predictions from moments that are propagated through the network, without draws."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb import noise
from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.moments import Operation, operations, output_moments, prepared
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.program import Program
from tfbbb.prediction.sizes import Sizes
from tfbbb.prediction.summary import Sums, summary
from tfbbb.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.types import Tensor
from tfbbb.variational_weight import VariationalWeight

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
        inputs: Tensor,
        recalibration: Recalibration = IDENTITY,
    ):
        # Before anything else: it names what has no closed form.
        self.operations: tuple[Operation, ...] = operations(model)
        super().__init__(model, likelihoods, plan, inputs, recalibration)

    def num_integrated(self, likelihood: Likelihood, num_outputs: int) -> int:
        if not likelihood.integrates_location:
            return 0
        return num_outputs // likelihood.num_outputs(1)

    def moments(self) -> Tensors:
        means = {
            name: tf.convert_to_tensor(weight.mean) for name, weight in self._weights()
        }
        return {"prepared": prepared(self.model), "means": means}

    @functools.cached_property
    def sizes(self) -> Sizes:
        # The network runs once, and all nodes are taken for any number of samples.
        share = -(-self.structure.widest // (2 * _NUM_NODES))
        return dataclasses.replace(super().sizes, widest=share, rounds=_NUM_NODES)

    def draws(self, seed: Tensor, first: int | Tensor, count: int | Tensor) -> Tensors:
        return {"nodes": {"first": first, "count": count}}

    def outputs(self, inputs: Tensor, moments: Tensors, draws: Tensors) -> list[Any]:
        with contextlib.ExitStack() as stack:
            # Not the variables' own values, which may have changed.
            for name, weight in self._weights():
                stack.enter_context(weight.of_mean(moments["means"][name]))
            pairs = output_moments(self.model, inputs, moments["prepared"])
        if len(self.likelihoods) == 1:
            pairs = [pairs]
        flat = tree.flatten(pairs)
        return [
            self._at_nodes(likelihood, mean, variance, **draws["nodes"])
            for likelihood, mean, variance in zip(
                self.likelihoods, flat[::2], flat[1::2], strict=True
            )
        ]

    def summary(self, found: Sums) -> dict[str, tf.Tensor]:
        return summary(found, drawn=False)

    def _weights(self) -> Iterator[tuple[str, VariationalWeight]]:
        """Gives every weight that has a posterior, with a name."""
        for info in self.structure.layer_infos:
            for weight in info.layer.variational_weights:
                yield f"{info.key}/{weight.name}", weight

    def _at_nodes(
        self,
        likelihood: Likelihood,
        mean: Tensor,
        variance: Tensor,
        first: int | Tensor,
        count: int | Tensor,
    ) -> tf.Tensor:
        """Returns the outputs at some of the nodes, of moments [K, rows, ..., P]."""
        mean, stddev = _rows_first(mean), _rows_first(tf.sqrt(variance))
        width = mean.shape[-1]
        integrated = self.num_integrated(likelihood, width)
        nodes = np.zeros([_NUM_NODES, 2, width], np.float32)
        nodes[..., integrated:] = _nodes(width - integrated)
        # [R, 2, K, ..., P], the 1 for members and places.
        nodes = nodes.reshape(_NUM_NODES, 2, *[1] * (len(mean.shape) - 4), width)
        nodes = tf.constant(nodes)[first : first + count]
        location_variance = None
        if integrated:
            of_means = tf.square(stddev[..., :integrated])
            location_variance = of_means * tf.ones_like(nodes[..., :integrated])
        return self._completed(likelihood, mean + stddev * nodes, location_variance)


def _rows_first(moments: Any) -> tf.Tensor:
    """Returns [K, rows, ..., P] as [rows, 1, 1, K, ..., P]."""
    moments = tf.transpose(moments, [1, 0, *range(2, len(moments.shape))])
    return moments[:, tf.newaxis, tf.newaxis]


def _nodes(dimensions: int) -> np.ndarray:
    """Returns standard normal nodes and their mirror images, [nodes, 2, dimensions].

    Their means are 0 and, where there are enough of them, their covariances those of
    independent standard normals, so that quadratic functions are averaged exactly.
    """
    if not dimensions:
        return np.zeros([_NUM_NODES, 2, 0])
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
    return np.stack([nodes, -nodes], axis=1)
