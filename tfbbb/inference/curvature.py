"""The curvature of the negative log likelihood in the weights, summed over the rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base import types
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes import likelihoods
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.inference.batches import Batches
from tfbbb.inference.curvature_blocks import (
    Block,
    DenseBlock,
    DiagonalBlock,
    KroneckerBlock,
)
from tfbbb.inference.curvature_sums import Structure, curvature_sums, weights_of
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.inference.output_curvature import curvature_roots, gradient
from tfbbb.inference.row_derivatives import RowDerivatives, RowPass

Kind = Literal["ggn", "empirical_fisher"]

# Batches from which on a trace takes less time than it saves.
_BATCHES_WORTH_A_TRACE = 12


@dataclass
class Curvature:
    """What one pass through the rows gives.

    `squares` is the sum of squared residuals in units of a learned normal noise, of
    `num_values` targets, and None for other likelihoods.
    """

    blocks: list[Block]
    log_likelihood: float
    squares: float | None
    num_values: float


def curvature(
    network: NetworkFunction,
    layers: Sequence[keras.Layer],
    batches: Batches,
    structure: Structure,
    kind: Kind,
    progress: Callable[[int], None] = lambda batch: None,
) -> Curvature:
    """Returns the curvature at the posterior means.

    With f(x_i, w) the outputs, J_i their Jacobian and r_i the row weights:

    - `"ggn"`: `sum_i r_i J_i^T H_i J_i`, H_i the second derivatives of
      -log p(y_i | f) in f. Where a likelihood is not log-concave in its outputs, the
      negative eigenvalues of H_i are set to 0, so the sum is positive semidefinite;
    - `"empirical_fisher"`: `sum_i r_i g_i g_i^T`, g_i the gradient of row i.

    The Kronecker factors of a weight tensor are `A = sum r a a^T / sum r` of its inputs
    and `B = sum r g^T H g` of its signals (Botev et al. 2017), also summed over the
    places of a convolution, A divided by their number (Eschenhagen et al. 2023).

    Sums are in float64; those of a diagonal over the rows of one batch are in the
    precision of the network.
    """
    differentiate = _row_step(network, layers, kind)
    if len(batches) >= _BATCHES_WORTH_A_TRACE:
        differentiate = tf.function(
            differentiate, autograph=False, reduce_retracing=True
        )
    sums: list[np.ndarray] | None = None
    for number, (x, y, weights) in enumerate(batches, 1):
        if np.any(np.asarray(weights) < 0):
            raise ValueError(
                "A row counts as a number of rows: its weight cannot be negative. Give "
                "rows that should not count the weight 0. "
                f"Received: sample_weight={np.min(weights)}"
            )
        totals, derivatives = tf.nest.map_structure(
            np.asarray, differentiate(x, y, weights)
        )
        matrices = curvature_sums(layers, derivatives, np.asarray(weights), structure)
        parts = [*totals, *matrices]
        if sums is None:
            # A tensor's memory is read-only.
            sums = [np.array(part, np.float64) for part in parts]
        else:
            for total, part in zip(sums, parts, strict=True):
                np.add(total, part, out=total)
        progress(number)
    assert sums is not None
    log_likelihood, squares, num_values, *matrices = sums
    return Curvature(
        _blocks(matrices, weights_of(layers), structure, batches.size),
        float(log_likelihood),
        float(squares) if learns_scale(network.model.likelihood) else None,
        float(num_values),
    )


def learns_scale(likelihood: Likelihood) -> bool:
    """Whether a likelihood has one learned scale of normal noise for all rows."""
    return (
        type(likelihood) is likelihoods.Normal
        and likelihood.learns
        and likelihood.resolution is None
    )


def _row_step(
    network: NetworkFunction, layers: Sequence[keras.Layer], kind: Kind
) -> Callable[..., tuple[tuple[Tensor, ...], RowDerivatives]]:
    """Returns what gives the sums over a batch of rows, and derivatives S of each row.

    The curvature of a row is `sum_q S_q S_q^T`: S_q are the derivatives of the outputs,
    weighted by column q of a root of the second derivatives, or by the gradient of the
    row's log likelihood.
    """
    likelihood = network.model.likelihood

    def step(
        x: types.Structure, y: Tensor, weights: Tensor
    ) -> tuple[tuple[Tensor, ...], RowDerivatives]:
        values = [weight.mean for weight in network.weights]
        rows = RowPass(network, values, layers, x)
        outputs = tf.cast(tf.stop_gradient(rows.outputs), tf.float64)
        weights = tf.cast(weights, tf.float64)
        if kind == "ggn":
            log_prob, directions = curvature_roots(likelihood, y, outputs)
        else:
            log_prob, slopes = gradient(likelihood, y, outputs)
            directions = slopes[:, tf.newaxis]
        squares, number = _residuals(likelihood, y, outputs, weights)
        ones = [1] * (len(directions.shape) - 1)
        directions *= tf.reshape(tf.sqrt(weights), [-1, *ones])
        total = tf.reduce_sum(weights * log_prob)
        return (total, squares, number), rows.derivatives(directions)

    return step


def _blocks(
    matrices: list[np.ndarray],
    weighted: list[tuple[keras.Layer, VariationalWeight]],
    structure: Structure,
    size: float,
) -> list[Block]:
    numbers = range(len(weighted))
    if structure == "kron":
        pairs = zip(matrices[::2], matrices[1::2], strict=True)
        return [
            KroneckerBlock((i,), row / size, column)
            for i, (row, column) in zip(numbers, pairs, strict=True)
        ]
    if structure == "diagonal":
        return [
            DiagonalBlock((i,), each) for i, each in zip(numbers, matrices, strict=True)
        ]
    sizes = tuple(weight.size for _, weight in weighted)
    return [DenseBlock(tuple(numbers), sizes, matrices[0])]


def _residuals(
    likelihood: Likelihood, y: ArrayLike, outputs: tf.Tensor, weights: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the sum of squares in units of the noise and the number of values."""
    zero = tf.constant(0.0, tf.float64)
    if not learns_scale(likelihood):
        return zero, zero
    parameters = likelihood.parameters(outputs)
    targets = tf.cast(likelihood.aligned(y, outputs), tf.float64)
    squares = tf.square((targets - parameters["loc"]) / parameters["scale"])
    rows = [-1, *[1] * (len(squares.shape) - 1)]
    each = tf.reshape(weights, rows)
    return tf.reduce_sum(each * squares), tf.reduce_sum(each * tf.ones_like(squares))
