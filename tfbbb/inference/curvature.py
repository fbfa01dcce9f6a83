"""The curvature of the negative log likelihood in the weights, summed over the rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from tfbbb import likelihoods
from tfbbb.inference.batches import Batches
from tfbbb.inference.curvature_blocks import (
    Block,
    DenseBlock,
    DiagonalBlock,
    KroneckerBlock,
)
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.inference.row_derivatives import RowDerivatives, RowPass
from tfbbb.likelihoods import Likelihood
from tfbbb.types import Tensor
from tfbbb.variational_weight import VariationalWeight

Structure = Literal["diagonal", "kron", "layer", "full"]
Kind = Literal["ggn", "empirical_fisher", "hessian"]

# With fewer batches a trace takes longer than it saves.
_BATCHES_WORTH_A_TRACE = 12
# Rows of the Hessian that are computed at once.
_HESSIAN_ROWS = 64


@dataclass
class Curvature:
    """What one pass through the rows gives.

    Attributes:
        blocks: The curvature of the weights, block by block.
        log_likelihood: Sum of log p(y_i | f(x_i, w)), in nats.
        squares: Sum of squared residuals in units of the noise, of a normal
            likelihood with learned noise; else None.
        num_values: Number of target values behind `squares`.
        num_clipped: Number of negative eigenvalues, of rows' second derivatives in
            their outputs, that were set to 0.
    """

    blocks: list[Block]
    log_likelihood: float
    squares: float | None
    num_values: float
    num_clipped: int


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
    - `"empirical_fisher"`: `sum_i r_i g_i g_i^T`, g_i the gradient of row i;
    - `"hessian"`: the second derivatives of `-sum_i r_i log p(y_i | f(x_i, w))`.

    The Kronecker factors of a weight tensor are `A = sum r a a^T / sum r` of its inputs
    and `B = sum r g^T H g` of its signals (Botev et al. 2017), also summed over the
    places of a convolution, A divided by their number (Eschenhagen et al. 2023).

    Sums are in float64.

    Args:
        network: The network.
        layers: The layers whose weights have a curvature.
        batches: The rows.
        structure: What is kept of the matrix.
        kind: Which curvature.
        progress: Called with the number of batches that are done.
    """
    values = network.split(network.means()[:1])
    step: Callable[..., Any]
    hessian = _HessianStep(network, layers, values) if kind == "hessian" else None
    step = hessian or _RowStep(network, layers, [v[0] for v in values], structure, kind)
    sums: list[Any] | None = None
    for number, (x, y, weights) in enumerate(batches, 1):
        if number == 1 and len(batches) >= _BATCHES_WORTH_A_TRACE:
            signature = tf.nest.map_structure(_any_rows, (x, y, weights))
            step = tf.function(step, input_signature=signature)
        parts = [part.numpy() for part in step(x, y, weights)]
        if hessian is not None:
            parts.append(hessian.matrix(x, y, weights))
        if sums is None:
            # A tensor's memory is read-only.
            sums = [np.array(part) for part in parts]
        else:
            sums = [
                np.add(total, part, out=total)
                for total, part in zip(sums, parts, strict=True)
            ]
        progress(number)
    assert sums is not None
    log_likelihood, squares, num_values, num_clipped, *matrices = sums
    weighted = _weighted(layers)
    if kind == "hessian":
        blocks = _blocks_of_matrix(matrices[0], weighted, structure)
    else:
        blocks = _blocks(matrices, weighted, structure, batches.size)
    return Curvature(
        blocks,
        float(log_likelihood),
        float(squares) if learns_scale(network.model.likelihood) else None,
        float(num_values),
        int(num_clipped),
    )


def _any_rows(tensor: tf.Tensor) -> tf.TensorSpec:
    return tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)


def learns_scale(likelihood: Likelihood) -> bool:
    """Whether a likelihood has one learned scale of normal noise for all rows."""
    return (
        type(likelihood) is likelihoods.Normal
        and likelihood.learns
        and likelihood.resolution is None
    )


class _RowStep:
    """Sums of one batch, from derivatives of its rows."""

    def __init__(
        self,
        network: NetworkFunction,
        layers: Sequence[keras.Layer],
        values: Sequence[Tensor],
        structure: Structure,
        kind: Kind,
    ):
        self._network = network
        self._layers = layers
        self._values = values
        self._structure = structure
        self._kind = kind

    def __call__(self, x: Any, y: Any, weights: Any) -> list[Any]:
        network, likelihood = self._network, self._network.model.likelihood
        rows = RowPass(network, self._values, self._layers, x)
        outputs = tf.cast(tf.stop_gradient(rows.outputs), tf.float64)
        weights = tf.cast(weights, tf.float64)
        clipped: Any = tf.constant(0)
        if self._kind == "ggn":
            log_prob, seconds = _second_derivatives(likelihood, y, outputs)
            if not _is_log_concave(likelihood):
                seconds, clipped = _without_negative(seconds)
            size = seconds.shape[-1]
            units = tf.eye(size, batch_shape=[tf.shape(outputs)[0]])
            shape = tf.concat([tf.shape(units)[:2], tf.shape(outputs)[1:]], 0)
            directions = tf.ensure_shape(
                tf.reshape(units, shape), [None, size, *outputs.shape[1:]]
            )
            middle = seconds * weights[:, tf.newaxis, tf.newaxis]
        else:
            log_prob, gradient = _gradient(likelihood, y, outputs)
            directions = gradient[:, tf.newaxis]
            middle = weights[:, tf.newaxis, tf.newaxis]
        squares, number = _residuals(likelihood, y, outputs, weights)
        sums = [tf.reduce_sum(weights * log_prob), squares, number, clipped]
        derivatives = rows.derivatives(directions)
        return sums + self._matrices(derivatives, middle, weights)

    def _matrices(
        self, derivatives: RowDerivatives, middle: tf.Tensor, weights: tf.Tensor
    ) -> list[tf.Tensor]:
        weighted = _weighted(self._layers)
        if self._structure == "kron":
            return [
                factor
                for layer, weight in weighted
                for factor in _factors(derivatives, layer, weight, middle, weights)
            ]
        if self._structure == "diagonal":
            return [
                _diagonal(derivatives, layer, weight, middle)
                for layer, weight in weighted
            ]
        jacobians = [derivatives.jacobian(*each) for each in weighted]
        if self._structure == "full":
            jacobians = [tf.concat(jacobians, axis=-1)]
        return [_product(each, middle) for each in jacobians]


def _weighted(
    layers: Sequence[keras.Layer],
) -> list[tuple[keras.Layer, VariationalWeight]]:
    return [(layer, weight) for layer in layers for weight in layer.variational_weights]


def _product(jacobian: tf.Tensor, middle: tf.Tensor) -> tf.Tensor:
    """Returns `sum_i J_i^T M_i J_i`, [n, n]."""
    size = jacobian.shape[-1]
    right = tf.reshape(tf.matmul(middle, jacobian), [-1, size])
    return tf.matmul(tf.reshape(jacobian, [-1, size]), right, transpose_a=True)


def _diagonal(
    derivatives: RowDerivatives,
    layer: keras.Layer,
    weight: VariationalWeight,
    middle: tf.Tensor,
) -> tf.Tensor:
    products = derivatives.products.get(id(layer), [])
    if len(products) == 1 and products[0].inputs.shape[1] == 1:
        (product,) = products
        signals = product.signals[:, :, 0]
        squares = tf.reduce_sum(signals * tf.matmul(middle, signals), axis=1)
        if weight.name == "bias":
            return tf.reduce_sum(squares, axis=0)
        inputs = tf.square(product.inputs[:, 0])
        return tf.reshape(tf.matmul(inputs, squares, transpose_a=True), [-1])
    jacobian = derivatives.jacobian(layer, weight)
    return tf.reduce_sum(jacobian * tf.matmul(middle, jacobian), axis=[0, 1])


def _factors(
    derivatives: RowDerivatives,
    layer: keras.Layer,
    weight: VariationalWeight,
    middle: tf.Tensor,
    weights: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the sums behind the factors A and B of a weight tensor."""
    (product,) = derivatives.products[id(layer)]
    inputs, signals = product.inputs, product.signals
    units, width = signals.shape[-1], inputs.shape[-1]
    if weight.name == "bias":
        # The bias is the kernel of a constant input; its places add up in a row.
        total = tf.reduce_sum(signals, axis=2)
        return tf.reduce_sum(weights)[tf.newaxis, tf.newaxis], _product(total, middle)
    places = tf.cast(tf.shape(inputs)[1], tf.float64)
    scaled = inputs * (weights / places)[:, tf.newaxis, tf.newaxis]
    row_factor = tf.matmul(
        tf.reshape(inputs, [-1, width]),
        tf.reshape(scaled, [-1, width]),
        transpose_a=True,
    )
    right = tf.einsum("bkl,bltu->bktu", middle, signals)
    column_factor = tf.matmul(
        tf.reshape(signals, [-1, units]),
        tf.reshape(right, [-1, units]),
        transpose_a=True,
    )
    return row_factor, column_factor


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
    if structure == "layer":
        return [
            DenseBlock((i,), (each.shape[0],), each)
            for i, each in zip(numbers, matrices, strict=True)
        ]
    sizes = tuple(weight.size for _, weight in weighted)
    return [DenseBlock(tuple(numbers), sizes, matrices[0])]


def _blocks_of_matrix(
    matrix: np.ndarray,
    weighted: list[tuple[keras.Layer, VariationalWeight]],
    structure: Structure,
) -> list[Block]:
    """Returns what a structure keeps of the whole matrix."""
    sizes = [weight.size for _, weight in weighted]
    if structure == "full":
        return [DenseBlock(tuple(range(len(sizes))), tuple(sizes), matrix)]
    blocks: list[Block] = []
    ends = np.cumsum(sizes)
    for i, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        own = matrix[end - size : end, end - size : end]
        if structure == "diagonal":
            blocks.append(DiagonalBlock((i,), np.diagonal(own).copy()))
        else:
            blocks.append(DenseBlock((i,), (size,), own))
    return blocks


def _second_derivatives(
    likelihood: Likelihood, y: Any, outputs: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns log p [rows] and `-d^2 log p / df^2`, [rows, Q, Q], of Q outputs."""
    known = _known_second_derivatives(likelihood, outputs)
    if known is not None:
        return -likelihood.negative_log_likelihood(y, outputs), known
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(outputs)
        log_prob, gradient = _gradient(likelihood, y, outputs)
        size = outputs.shape[1:].num_elements()
        flat = tf.reshape(gradient, [-1, size])
        each = [flat[:, q] for q in range(size)]
    columns = [
        tf.reshape(
            -tape.gradient(one, outputs, unconnected_gradients="zero"), [-1, size]
        )
        for one in each
    ]
    return log_prob, tf.stack(columns, axis=-1)


def _known_second_derivatives(
    likelihood: Likelihood, outputs: tf.Tensor
) -> tf.Tensor | None:
    """Returns `-d^2 log p / df^2` of the commonest likelihoods, which is quicker."""
    if len(outputs.shape) != 2:
        return None
    if type(likelihood) is likelihoods.Categorical:
        shares = likelihood.probabilities(outputs)
        return tf.linalg.diag(shares) - shares[:, :, tf.newaxis] * shares[:, tf.newaxis]
    if type(likelihood) is likelihoods.Normal and not likelihood.heteroscedastic:
        parameters = likelihood.parameters(outputs)
        scale = tf.broadcast_to(parameters["scale"], tf.shape(outputs))
        slope = tf.convert_to_tensor(likelihood.target_scale)
        unit = tf.cast(slope, scale.dtype) if likelihood.standardize else 1.0
        diagonal = tf.linalg.diag(tf.square(unit / scale))
        return tf.ensure_shape(diagonal, [None, *[outputs.shape[1]] * 2])
    return None


def _gradient(
    likelihood: Likelihood, y: Any, outputs: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns log p [rows] and its gradient in the outputs, [rows, ..., P]."""
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        log_prob = -likelihood.negative_log_likelihood(y, outputs)
    return log_prob, tape.gradient(log_prob, outputs)


def _is_log_concave(likelihood: Likelihood) -> bool:
    """Whether log p(y | f) is known to be concave in the outputs f together."""
    if isinstance(likelihood, likelihoods.Categorical | likelihoods.Bernoulli):
        return True
    return (
        isinstance(likelihood, likelihoods.Normal | likelihoods.MultivariateNormal)
        and not likelihood.heteroscedastic
    )


def _without_negative(matrices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns matrices without their negative eigenvalues, and the number of these."""
    if matrices.shape[-1] == 1:
        eigenvalues, kept = matrices, tf.maximum(matrices, 0.0)
    else:
        eigenvalues, vectors = tf.linalg.eigh(matrices)
        scaled = vectors * tf.maximum(eigenvalues, 0.0)[:, tf.newaxis]
        kept = tf.matmul(scaled, vectors, transpose_b=True)
    # Rounding gives the zeros of a singular matrix either sign.
    largest = tf.reduce_max(tf.abs(matrices), axis=[1, 2])
    threshold = -1e-10 * tf.reshape(largest, [-1, *[1] * (len(eigenvalues.shape) - 1)])
    return kept, tf.math.count_nonzero(eigenvalues < threshold, dtype=tf.int32)


def _residuals(
    likelihood: Likelihood, y: Any, outputs: tf.Tensor, weights: tf.Tensor
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


class _HessianStep:
    """Sums of one batch, with the whole Hessian by differentiating twice."""

    def __init__(
        self,
        network: NetworkFunction,
        layers: Sequence[keras.Layer],
        values: Sequence[Tensor],
    ):
        self._network = network
        self._values = [value[0] for value in values]
        wanted = [id(weight) for _, weight in _weighted(layers)]
        order = {id(weight): i for i, weight in enumerate(network.weights)}
        self._chosen = [order[each] for each in wanted]
        self._size = sum(network.sizes[i] for i in self._chosen)
        self._rows = tf.function(self._hessian_rows, reduce_retracing=True)

    def __call__(self, x: Any, y: Any, weights: Any) -> list[Any]:
        likelihood = self._network.model.likelihood
        outputs = self._network.outputs([v[tf.newaxis] for v in self._values], x)[0]
        outputs = tf.cast(outputs, tf.float64)
        weights = tf.cast(weights, tf.float64)
        log_prob = -likelihood.negative_log_likelihood(y, outputs)
        squares, number = _residuals(likelihood, y, outputs, weights)
        return [tf.reduce_sum(weights * log_prob), squares, number, tf.constant(0)]

    def matrix(self, x: Any, y: Any, weights: Any) -> np.ndarray:
        """Returns the Hessian of one batch, [D, D], float64."""
        parts = []
        for first in range(0, self._size, _HESSIAN_ROWS):
            rows = np.arange(first, first + _HESSIAN_ROWS) % self._size
            part = self._rows(x, y, weights, tf.constant(rows)).numpy()
            parts.append(part[: self._size - first])
        matrix = np.concatenate(parts).astype(np.float64)
        return 0.5 * (matrix + matrix.T)

    def _hessian_rows(self, x: Any, y: Any, weights: Any, rows: Any) -> tf.Tensor:
        """Returns some rows of the Hessian, [rows, D]: one copy of the weights each."""
        network, likelihood = self._network, self._network.model.likelihood
        values = [tf.repeat(v[tf.newaxis], _HESSIAN_ROWS, 0) for v in self._values]
        chosen = [values[i] for i in self._chosen]
        with tf.GradientTape() as outer:
            outer.watch(chosen)
            with tf.GradientTape() as inner:
                inner.watch(chosen)
                outputs = tf.cast(network.outputs(values, x), tf.float64)
                targets = likelihood.aligned(y, outputs[0])
                log_prob = likelihood.log_prob(targets, outputs)
                log_prob = tf.reduce_sum(log_prob, list(range(2, len(log_prob.shape))))
                loss = -tf.reduce_sum(log_prob * tf.cast(weights, tf.float64))
            gradients = inner.gradient(loss, chosen, unconnected_gradients="zero")
            entries = tf.gather(self._join(gradients), rows, batch_dims=1)
            total = tf.reduce_sum(entries)
        return self._join(outer.gradient(total, chosen, unconnected_gradients="zero"))

    def _join(self, values: Sequence[tf.Tensor]) -> tf.Tensor:
        return tf.concat([tf.reshape(v, [_HESSIAN_ROWS, -1]) for v in values], axis=-1)
