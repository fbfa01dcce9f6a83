"""Predictions from moments that are propagated through the network, without draws.

The outputs are taken as independent normals. Some likelihoods integrate the outputs
that are their mean. Over all other outputs a likelihood is averaged at the nodes of a
fixed quadrature (a Sobol sequence under the inverse of the normal distribution
function, with its mirror image), which take the place of draws.
"""

import contextlib
import dataclasses
from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base import noise
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.moments import output_moments, prepared
from tfbbb.prediction.properties import Sizes
from tfbbb.prediction.structure import Structure

# Nodes and their mirror images, at which a likelihood is averaged over its outputs.
_NUM_NODES = 64
# Dimensions of the largest Sobol sequence that TensorFlow has.
_MOST_DIMENSIONS = 1111


def change_sizes(sizes: Sizes) -> Sizes:
    """Returns the sizes of a pass that propagates moments instead of drawing."""
    # The network runs once, and all nodes are taken for any number of samples.
    share = -(-sizes.widest // (2 * _NUM_NODES))
    return dataclasses.replace(sizes, widest=share, rounds=_NUM_NODES)


def weight_tensors(model: keras.Model, structure: Structure) -> Tensors:
    """Returns the tensors that the propagation computes from the weights alone."""
    means = {
        name: tf.convert_to_tensor(weight.mean) for name, weight in _weights(structure)
    }
    return {"prepared": prepared(model), "means": means}


def moments_of_outputs(
    model: keras.Model, structure: Structure, inputs: Tensor, tensors: Tensors
) -> list[tuple[tf.Tensor, tf.Tensor]]:
    """Returns mean and variance of each output, [members, rows, ..., P] each."""
    with contextlib.ExitStack() as stack:
        # Not the variables' own values, which may have changed.
        for name, weight in _weights(structure):
            stack.enter_context(weight.of_mean(tensors["means"][name]))
        pairs = tree.flatten(output_moments(model, inputs, tensors["prepared"]))
    return list(zip(pairs[::2], pairs[1::2], strict=True))


def outputs_at_nodes(
    likelihood: Likelihood,
    mean: Tensor,
    variance: Tensor,
    beyond: Tensor | None,
    first: int | Tensor,
    count: int | Tensor,
) -> tuple[tf.Tensor, tf.Tensor | None, tf.Tensor | None]:
    """Returns an output at some of the nodes, of moments [K, rows, ..., P].

    Args:
        likelihood: The likelihood of the output.
        mean: Its mean.
        variance: Its variance.
        beyond: The further variance of its locations, [rows, k], or None: see
            `tfbbb.Extrapolation`.
        first: The first node.
        count: The number of nodes.

    Returns:
        The output, [rows, R, 2, K, ..., P], the variance of its integrated mean,
        [rows, R, 2, K, ..., k], or None, and likewise how far its locations move for
        `beyond` if the likelihood takes that apart.
    """
    mean, variance = _rows_first(mean), _rows_first(variance)
    share, num_beyond = None, 0
    if beyond is not None:
        num_beyond = beyond.shape[-1]
        beyond = beyond[:, tf.newaxis, tf.newaxis, tf.newaxis]
        added = tf.pad(beyond, [[0, 0]] * 4 + [[0, mean.shape[-1] - num_beyond]])
        variance += added
        if not likelihood.num_integrated(mean.shape[-1]):
            # Of a sum of two normals, the part that is expected to be the second's.
            share = tf.math.divide_no_nan(added, variance)
    stddev = tf.sqrt(variance)
    width = mean.shape[-1]
    integrated = likelihood.num_integrated(width)
    nodes = np.zeros([_NUM_NODES, 2, width], np.float32)
    nodes[..., integrated:] = _nodes(width - integrated)
    # [R, 2, K, ..., P], the 1 for members and places.
    nodes = nodes.reshape(_NUM_NODES, 2, *[1] * (len(mean.shape) - 4), width)
    nodes = tf.constant(nodes)[first : first + count]
    location_variance = None
    if integrated:
        mean_variance = tf.square(stddev[..., :integrated])
        location_variance = mean_variance * tf.ones_like(nodes[..., :integrated])
    moves = stddev * nodes
    if share is None:
        return mean + moves, location_variance, None
    further = share * moves
    return mean + moves - further, None, further[..., :num_beyond]


def _weights(structure: Structure) -> Iterator[tuple[str, VariationalWeight]]:
    """Yields every weight that has a posterior, with a name."""
    for info in structure.layer_infos:
        for weight in info.layer.variational_weights:
            yield f"{info.key}/{weight.name}", weight


def _rows_first(moments: Tensor) -> tf.Tensor:
    """Returns [K, rows, ..., P] as [rows, 1, 1, K, ..., P]."""
    moments = tf.transpose(moments, [1, 0, *range(2, len(moments.shape))])
    return moments[:, tf.newaxis, tf.newaxis]


def _nodes(dimensions: int) -> np.ndarray:
    """Returns standard normal nodes and their mirror images, [nodes, 2, dimensions].

    Their means are 0. If there are enough nodes, their covariance is the identity, so
    quadratic functions are averaged exactly.
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
