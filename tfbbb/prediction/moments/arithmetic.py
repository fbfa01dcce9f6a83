"""Sums and products, exact for tensors that depend on different weights."""

from collections.abc import Sequence

import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.prediction.moments.marginals import (
    Marginals,
    are_independent,
    mean_of,
    variance_of,
)
from tfbbb.prediction.moments.registry import Call

DEPENDENT = "What it joins depends on the same weights, and is taken as independent."


def total(call: Call, terms: Sequence[Tensor | Marginals]) -> Marginals:
    """Returns the marginals of `sum_i x_i`: means and variances add up."""
    _note_dependence(call, terms)
    mean, variance = sum(map(mean_of, terms)), sum(map(variance_of, terms))
    return _joined(terms, mean, variance, normal=True)


def product(call: Call, factors: Sequence[Tensor | Marginals]) -> Marginals:
    """Returns the marginals of `prod_i x_i`, two by two.

    `Var[x y] = Var[x] (E[y]^2 + Var[y]) + E[x]^2 Var[y]`
    """
    _note_dependence(call, factors)
    mean, variance = mean_of(factors[0]), variance_of(factors[0])
    for factor in factors[1:]:
        m, v = mean_of(factor), variance_of(factor)
        variance = variance * (tf.square(m) + v) + tf.square(mean) * v
        mean = mean * m
    number = sum(isinstance(x, Marginals) for x in factors)
    return _joined(factors, mean, variance, normal=number == 1)


def concatenated(
    call: Call, tensors: Sequence[Tensor | Marginals], axis: int
) -> Marginals:
    """Returns the marginals of concatenated tensors."""
    if axis % len(mean_of(tensors[0]).shape) == 0:
        call.refuse("it joins batches of rows")
    mean = tf.concat(list(map(mean_of, tensors)), axis)
    variance = tf.concat(list(map(variance_of, tensors)), axis)
    return _joined(tensors, mean, variance, normal=True, copies=False)


def _joined(
    tensors: Sequence[Tensor | Marginals],
    mean: Tensor,
    variance: Tensor,
    *,
    normal: bool,
    copies: bool = True,
) -> Marginals:
    uncertain = [x for x in tensors if isinstance(x, Marginals)]
    # Where a tensor is broadcast, its elements serve several of the outputs.
    whole = all(x.mean.shape[1:] == mean.shape[1:] for x in uncertain)
    return Marginals(
        mean,
        variance,
        frozenset().union(*(x.sources for x in uncertain)),
        independent=(whole or not copies)
        and all(x.is_independent for x in uncertain)
        and are_independent(*uncertain),
        # Sums of linear functions of the same normal weights are normal too.
        normal=normal and all(x.normal for x in uncertain),
    )


def _note_dependence(call: Call, tensors: Sequence[Tensor | Marginals]) -> None:
    if not are_independent(*tensors):
        call.approximate(DEPENDENT)


def negative(tensor: Tensor) -> Tensor:
    """Returns `-x`, of marginals or of a tensor that is certain."""
    if isinstance(tensor, Marginals):
        return scaled(tensor, -1.0)
    return -tf.cast(tensor, tf.float32)


def scaled(tensor: Marginals, factor: float) -> Marginals:
    """Returns the marginals of `factor x`."""
    return tensor.replace(
        mean=factor * tensor.mean, variance=factor**2 * tensor.variance
    )
