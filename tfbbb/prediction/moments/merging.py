"""Layers that join several tensors."""

from keras import layers

from tfbbb.base.types import Tensor
from tfbbb.prediction.moments.arithmetic import (
    concatenated,
    negative,
    product,
    scaled,
    total,
)
from tfbbb.prediction.moments.marginals import Marginals, mean_of
from tfbbb.prediction.moments.registry import Call, register_moments


@register_moments(layers.Add)
def add(call: Call) -> Marginals:
    """`sum_i x_i`: means and variances add up."""
    return total(call, _of_one_rank(call))


@register_moments(layers.Average)
def average(call: Call) -> Marginals:
    """`sum_i x_i / n`."""
    return scaled(total(call, _of_one_rank(call)), 1.0 / len(call.inputs))


@register_moments(layers.Subtract)
def subtract(call: Call) -> Marginals:
    """`x_1 - x_2`."""
    x, y = _of_one_rank(call)
    return total(call, [x, negative(y)])


@register_moments(layers.Multiply)
def multiply(call: Call) -> Marginals:
    """`prod_i x_i`, two by two."""
    return product(call, _of_one_rank(call))


@register_moments(layers.Concatenate)
def concatenate(call: Call) -> Marginals:
    """Concatenates the tensors."""
    return concatenated(call, call.inputs, call.operation.axis)


def _of_one_rank(call: Call) -> list[Tensor | Marginals]:
    """Returns the tensors that a layer joins; refuses ones of different ranks."""
    if len({len(mean_of(x).shape) for x in call.inputs}) > 1:
        call.refuse("its inputs have different numbers of axes")
    return call.inputs
