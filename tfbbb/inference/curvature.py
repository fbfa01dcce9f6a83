"""The curvature of the negative log likelihood in the weights, summed over the rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
from tfbbb.prediction import structure as prediction_structure

Kind = Literal["ggn", "empirical_fisher"]

# Batches from which on a trace takes less time than it saves.
_BATCHES_WORTH_A_TRACE = 12


@dataclass
class Curvature:
    """What one pass through the rows gives.

    Attributes:
        blocks: The curvature of the weights, block by block.
        log_likelihood: Sum of log p(y_i | f(x_i, w)), in nats.
        squares: Sum of squared residuals in units of the noise, of a normal
            likelihood with learned noise; else None.
        num_values: Number of target values behind `squares`.
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
    step = _RowStep.of(network, layers, kind)
    sums: list[np.ndarray] | None = None
    for number, (x, y, weights) in enumerate(batches, 1):
        parts = step(x, y, weights, structure)
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


class _RowStep:
    """Sums of one batch, from derivatives of its rows.

    A model keeps its step, which is compiled once it has run so many batches, in one
    fit or in several, that the trace is worth its time.

    Args:
        network: The network.
        layers: The layers whose weights have a curvature.
        kind: Which curvature.
    """

    def __init__(
        self, network: NetworkFunction, layers: Sequence[keras.Layer], kind: Kind
    ):
        self._network = network
        self._layers = layers
        self._kind = kind
        self._likelihood = network.model.likelihood
        self._num_batches = 0
        self._traced: dict[str, Callable[..., Any]] = {}

    @classmethod
    def of(
        cls, network: NetworkFunction, layers: Sequence[keras.Layer], kind: Kind
    ) -> "_RowStep":
        """Returns the step of a model, which the first call of its kind makes."""
        model_structure = prediction_structure.Structure.of(network.model)
        indices = [model_structure.indices[id(layer)] for layer in layers]
        # The step references the likelihood, so its id is that of no other.
        key = (kind, *indices, id(network.model.likelihood))
        step = model_structure.row_steps.get(key)
        if step is None:
            step = cls(network, layers, kind)
            model_structure.row_steps.keep(key, step)
        return step

    def __call__(
        self, x: types.Structure, y: Tensor, weights: Tensor, structure: Structure
    ) -> list[ArrayLike]:
        """Returns log likelihood, squares, their number, and the matrices."""
        if np.any(np.asarray(weights) < 0):
            raise ValueError(
                "A row counts as a number of rows: its weight cannot be negative. Give "
                "rows that should not count the weight 0. "
                f"Received: sample_weight={np.min(weights)}"
            )
        values = [weight.mean for weight in self._network.weights]
        differentiate = self._differentiate
        self._num_batches += 1
        if self._num_batches >= _BATCHES_WORTH_A_TRACE:
            differentiate = self._trace((values, x, y, weights))
        sums, derivatives = tf.nest.map_structure(
            np.asarray, differentiate(values, x, y, weights)
        )
        matrices = curvature_sums(
            self._layers, derivatives, np.asarray(weights), structure
        )
        return [*sums, *matrices]

    def _trace(self, arguments: tuple[types.Structure, ...]) -> Callable[..., Any]:
        """Returns `_differentiate` compiled for any number of rows."""
        values, *rows = arguments
        signature = (
            tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), values),
            *tf.nest.map_structure(_any_rows, rows),
        )
        key = repr(signature)
        if key not in self._traced:
            self._traced[key] = tf.function(
                self._differentiate, input_signature=signature, autograph=False
            )
        return self._traced[key]

    def _differentiate(
        self, values: list[Tensor], x: types.Structure, y: Tensor, weights: Tensor
    ) -> tuple[tuple[Tensor, ...], RowDerivatives]:
        """Returns the sums over the rows, and derivatives S of each row.

        The curvature of a row is `sum_q S_q S_q^T`: S_q are the derivatives of the
        outputs, weighted by column q of a root of the second derivatives, or by the
        gradient of the row's log likelihood.
        """
        likelihood = self._likelihood
        rows = RowPass(self._network, values, self._layers, x)
        outputs = tf.cast(tf.stop_gradient(rows.outputs), tf.float64)
        weights = tf.cast(weights, tf.float64)
        if self._kind == "ggn":
            log_prob, directions = curvature_roots(likelihood, y, outputs)
        else:
            log_prob, slopes = gradient(likelihood, y, outputs)
            directions = slopes[:, tf.newaxis]
        squares, number = _residuals(likelihood, y, outputs, weights)
        ones = [1] * (len(directions.shape) - 1)
        directions *= tf.reshape(tf.sqrt(weights), [-1, *ones])
        total = tf.reduce_sum(weights * log_prob)
        return (total, squares, number), rows.derivatives(directions)


def _any_rows(tensor: tf.Tensor) -> tf.TensorSpec:
    return tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)


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
