"""Sums over rows of the curvature that derivatives of each row give."""

from collections.abc import Sequence
from typing import Literal

import keras
import numpy as np

from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.inference.row_derivatives import Products, RowDerivatives

Structure = Literal["diagonal", "kron", "full"]


def weights_of(
    layers: Sequence[keras.Layer],
) -> list[tuple[keras.Layer, VariationalWeight]]:
    """Returns the weights of layers, each with its layer."""
    return [(layer, weight) for layer in layers for weight in layer.variational_weights]


def curvature_sums(
    layers: Sequence[keras.Layer],
    derivatives: RowDerivatives,
    weights: np.ndarray,
    structure: Structure,
) -> list[np.ndarray]:
    """Returns what a structure keeps of `sum_rows sum_q S_q S_q^T`, in float64.

    S has the root of the rows' weights. NumPy multiplies, not TensorFlow: its products
    of a matrix with its own transpose take half the operations.
    """
    weighted = weights_of(layers)
    if structure == "kron":
        return [
            factor
            for layer, weight in weighted
            for factor in _factors(derivatives, layer, weight, weights)
        ]
    if structure == "diagonal":
        return [_diagonal(derivatives, *each) for each in weighted]
    return [_dense(derivatives, weighted)]


def _diagonal(
    derivatives: RowDerivatives, layer: keras.Layer, weight: VariationalWeight
) -> np.ndarray:
    product = _vector_product(derivatives, layer)
    if product is None:
        return np.square(derivatives.jacobian(layer, weight)).sum(axis=(0, 1))
    # A sum of squares has no cancellation: single precision serves within a batch.
    single = np.result_type(product.signals, np.float32)
    squares = np.square(product.signals, dtype=single).sum(axis=(1, 2))
    if weight.name == "bias":
        return squares.sum(axis=0, dtype=np.float64)
    return (np.square(product.inputs[:, 0], dtype=single).T @ squares).ravel()


def _dense(
    derivatives: RowDerivatives, weighted: list[tuple[keras.Layer, VariationalWeight]]
) -> np.ndarray:
    """Returns all of the curvature, [n, n]."""
    products = [_vector_product(derivatives, layer) for layer, _ in weighted]
    factors = [
        _inputs_and_signals(product, weight)
        for product, (_, weight) in zip(products, weighted, strict=True)
        if product is not None
    ]
    if len(factors) == len(weighted) and factors[0][1].shape[1] > 1:
        return _of_outer_products(factors)
    jacobians = [derivatives.jacobian(*each) for each in weighted]
    return _gram(np.concatenate(jacobians, -1))


def _of_outer_products(factors: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Returns the curvature of weights whose derivatives are outer products.

    With inputs a [rows, I] and signals s [rows, Q, U] of the weights k and l, `C_iu,jv
    = sum_rows a_ki a_lj sum_q s_kqu s_lqv`, so the sum over q is that of small
    matrices, before any product of the inputs.
    """
    sizes = [inputs.shape[1] * signals.shape[2] for inputs, signals in factors]
    ends = np.cumsum(sizes)
    slices = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    matrix = np.empty((ends[-1], ends[-1]))
    for k, own in enumerate(slices):
        for factor, other in zip(factors[: k + 1], slices, strict=False):
            block = _outer_product_block(factors[k], factor)
            matrix[own, other] = block
            matrix[other, own] = block.T
    return matrix


def _outer_product_block(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    (left, left_signals), (right, right_signals) = one, other
    middle = left_signals.swapaxes(1, 2) @ right_signals
    units = left_signals.shape[2]
    block = np.empty((left.shape[1], units, right.shape[1], right_signals.shape[2]))
    for u in range(units):
        # A block on the diagonal is symmetric: the part with v < u is known.
        first = u if one is other else 0
        factor = middle[:, u, first:, np.newaxis] * right[:, np.newaxis]
        part = left.T @ factor.reshape(len(factor), -1)
        part = part.reshape(left.shape[1], -1, right.shape[1])
        block[:, u, :, first:] = part.swapaxes(1, 2)
        if one is other:
            block[:, u:, :, u] = part.transpose(2, 1, 0)
    return block.reshape(left.shape[1] * units, -1)


def _vector_product(derivatives: RowDerivatives, layer: keras.Layer) -> Products | None:
    """Returns the one call of a layer, if it multiplies one vector for each row."""
    products = derivatives.products.get(id(layer), [])
    if len(products) == 1 and products[0].inputs.shape[1] == 1:
        return products[0]
    return None


def _inputs_and_signals(
    product: Products, weight: VariationalWeight
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the factors of a weight's derivatives, [rows, I] and [rows, Q, U]."""
    signals = np.asarray(product.signals, np.float64)[:, :, 0]
    if weight.name == "bias":
        return np.ones((len(signals), 1)), signals
    return np.asarray(product.inputs, np.float64)[:, 0], signals


def _factors(
    derivatives: RowDerivatives,
    layer: keras.Layer,
    weight: VariationalWeight,
    weights: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sums behind the factors A and B of a weight tensor."""
    (product,) = derivatives.products[id(layer)]
    if weight.name == "bias":
        # The bias is the kernel of a constant input; its places add up in a row.
        total = np.full((1, 1), np.sum(weights, dtype=np.float64))
        signals: np.ndarray = np.asarray(product.signals, np.float64).sum(axis=2)
        return total, _gram(signals)
    places = product.inputs.shape[1]
    inputs = np.asarray(product.inputs, np.float64)
    scales = np.sqrt(np.asarray(weights, np.float64) / places)
    return _gram(inputs * scales[:, np.newaxis, np.newaxis]), _gram(product.signals)


def _gram(rows: np.ndarray) -> np.ndarray:
    """Returns the sum of the outer products of vectors [..., n], [n, n], float64."""
    flat = np.asarray(rows, np.float64).reshape(-1, rows.shape[-1])
    return flat.T @ flat
