"""Operations on several tensors."""

from typing import Any

import keras
import tensorflow as tf
from keras import layers

from tfbbb.prediction.moments.marginals import (
    Marginals,
    are_independent,
    mean_of,
    variance_of,
)
from tfbbb.prediction.moments.registry import Call, register_moments

DEPENDENT = "What it joins depends on the same weights, and is taken as independent."


@register_moments(layers.Add)
def add(call: Call) -> Marginals:
    """`sum_i x_i`: means and variances add up."""
    return _sum(call, _of_one_rank(call))


@register_moments(layers.Average)
def average(call: Call) -> Marginals:
    """`sum_i x_i / n`."""
    return _scaled(_sum(call, _of_one_rank(call)), 1.0 / len(call.inputs))


@register_moments(layers.Subtract)
def subtract(call: Call) -> Marginals:
    """`x_1 - x_2`."""
    x, y = _of_one_rank(call)
    return _sum(call, [x, _negative(y)])


@register_moments(layers.Multiply)
def multiply(call: Call) -> Marginals:
    """`prod_i x_i`, two by two."""
    return _product(call, _of_one_rank(call))


@register_moments(layers.Concatenate)
def concatenate(call: Call) -> Marginals:
    """The tensors beside one another."""
    return _concatenated(call, call.inputs, call.operation.axis)


def _operation(expression: Any) -> type:
    """Returns the class of operations of a graph behind an expression of tensors."""
    symbol = keras.KerasTensor((None, 2))
    return type(expression(symbol)._keras_history.operation)


@register_moments(_operation(lambda x: x + x))
def operator_add(call: Call) -> Marginals:
    """`x + y`."""
    return _sum(call, _operands(call))


@register_moments(_operation(lambda x: x - x))
def operator_subtract(call: Call) -> Marginals:
    """`x - y`."""
    x, y = _operands(call)
    return _sum(call, [x, _negative(y)])


@register_moments(_operation(lambda x: x * x))
def operator_multiply(call: Call) -> Marginals:
    """`x * y`."""
    return _product(call, _operands(call))


@register_moments(_operation(lambda x: x / x))
def operator_divide(call: Call) -> Marginals:
    """`x / y` of a certain y."""
    x, y = _operands(call)
    if isinstance(y, Marginals):
        call.refuse("it divides by what is random")
    return _product(call, [x, 1.0 / tf.cast(y, tf.float32)])


@register_moments(_operation(lambda x: -x))
def operator_negative(call: Call) -> Marginals:
    """`-x`."""
    return _scaled(call.inputs, -1.0)


@register_moments(_operation(lambda x: keras.ops.concatenate([x, x])))
def operator_concatenate(call: Call) -> Marginals:
    """The tensors beside one another."""
    return _concatenated(call, call.inputs, call.operation.axis)


def _operands(call: Call) -> list[Any]:
    return [*call.args, *call.kwargs.values()]


def _sum(call: Call, terms: Any) -> Marginals:
    _note_dependence(call, terms)
    mean, variance = sum(map(mean_of, terms)), sum(map(variance_of, terms))
    return _joined(terms, mean, variance, normal=True)


def _product(call: Call, factors: Any) -> Marginals:
    _note_dependence(call, factors)
    mean, variance = mean_of(factors[0]), variance_of(factors[0])
    for factor in factors[1:]:
        m, v = mean_of(factor), variance_of(factor)
        # Var[x y] of independent x and y.
        variance = variance * (tf.square(m) + v) + tf.square(mean) * v
        mean = mean * m
    number = sum(isinstance(x, Marginals) for x in factors)
    return _joined(factors, mean, variance, normal=number == 1)


def _concatenated(call: Call, tensors: Any, axis: int) -> Marginals:
    if axis % len(mean_of(tensors[0]).shape) == 0:
        call.refuse("it joins batches of rows")
    mean = tf.concat(list(map(mean_of, tensors)), axis)
    variance = tf.concat(list(map(variance_of, tensors)), axis)
    return _joined(tensors, mean, variance, normal=True, copies=False)


def _joined(
    tensors: Any, mean: Any, variance: Any, *, normal: bool, copies: bool = True
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
        # Sums of what is linear in the same normal weights are normal too.
        normal=normal and all(x.normal for x in uncertain),
    )


def _note_dependence(call: Call, tensors: Any) -> None:
    if not are_independent(*tensors):
        call.approximate(DEPENDENT)


def _of_one_rank(call: Call) -> Any:
    """Returns what a layer joins, as long as Keras need not add axes to it."""
    if len({len(mean_of(x).shape) for x in call.inputs}) > 1:
        call.refuse("its inputs have different numbers of axes")
    return call.inputs


def _negative(tensor: Any) -> Any:
    if isinstance(tensor, Marginals):
        return _scaled(tensor, -1.0)
    return -tf.cast(tensor, tf.float32)


def _scaled(tensor: Marginals, factor: float) -> Marginals:
    return tensor.replace(
        mean=factor * tensor.mean, variance=factor**2 * tensor.variance
    )
