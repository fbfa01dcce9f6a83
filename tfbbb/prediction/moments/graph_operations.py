"""Functions of `keras.ops` and operators in a model's graph."""

from collections.abc import Callable

import keras
import tensorflow as tf
from keras import activations, ops

from tfbbb.base.private_apis import producer
from tfbbb.base.types import Tensor
from tfbbb.prediction.moments.activations import activated, elementwise
from tfbbb.prediction.moments.arithmetic import (
    concatenated,
    negative,
    product,
    scaled,
    total,
)
from tfbbb.prediction.moments.exponential import elu
from tfbbb.prediction.moments.marginals import Marginals, MeanAndVariance
from tfbbb.prediction.moments.rectified import leaky_relu
from tfbbb.prediction.moments.registry import Call, register_moments


def _class_of(expression: Callable[[Tensor], Tensor]) -> type:
    """Returns the class of the operation that an expression puts into a graph."""
    symbol = keras.KerasTensor((None, 2))
    return type(producer(expression(symbol)))


def _operands(call: Call) -> list[Tensor | Marginals]:
    return [*call.args, *call.kwargs.values()]


@register_moments(_class_of(lambda x: x + x))
def add(call: Call) -> Marginals:
    """`x + y`."""
    return total(call, _operands(call))


@register_moments(_class_of(lambda x: x - x))
def subtract(call: Call) -> Marginals:
    """`x - y`."""
    x, y = _operands(call)
    return total(call, [x, negative(y)])


@register_moments(_class_of(lambda x: x * x))
def multiply(call: Call) -> Marginals:
    """`x * y`."""
    return product(call, _operands(call))


@register_moments(_class_of(lambda x: x / x))
def divide(call: Call) -> Marginals:
    """`x / y` of a certain y."""
    x, y = _operands(call)
    if isinstance(y, Marginals):
        call.refuse("it divides by what is random")
    return product(call, [x, 1.0 / tf.cast(y, tf.float32)])


@register_moments(_class_of(lambda x: -x))
def negate(call: Call) -> Marginals:
    """`-x`."""
    return scaled(call.inputs, -1.0)


@register_moments(_class_of(ops.square))
def square(call: Call) -> Marginals:
    """`x^2`, whose variance is `2 v^2 + 4 m^2 v` of a normal."""

    def of_normal(mean: Tensor, variance: Tensor) -> MeanAndVariance:
        squared = tf.square(mean)
        return squared + variance, 2.0 * variance * (variance + 2.0 * squared)

    return elementwise(call, call.inputs, of_normal)


@register_moments(_class_of(lambda x: ops.concatenate([x, x])))
def concatenate(call: Call) -> Marginals:
    """Concatenates the tensors."""
    return concatenated(call, call.inputs, call.operation.axis)


@register_moments(_class_of(lambda x: x[:, :1]))
def take(call: Call) -> Marginals:
    """`x[:, ...]`: some of the elements."""
    x, key = _operands(call)
    key = tuple(key) if isinstance(key, list | tuple) else (key,)
    whole_rows = key[0] == slice(None) or (
        key[0] is Ellipsis and len(key) <= len(x.mean.shape)
    )
    if not whole_rows:
        call.refuse("it takes some of the rows")
    return x.replace(mean=x.mean[key], variance=x.variance[key])


@register_moments(_class_of(lambda x: ops.reshape(x, (-1, 2, 1))))
def reshape(call: Call) -> Marginals:
    """The elements of a row in another shape."""
    operation, x = call.operation, call.inputs
    if operation.newshape[0] not in (-1, None):
        call.refuse("it gives the number of rows; let that be -1")
    return x.replace(mean=operation.call(x.mean), variance=operation.call(x.variance))


for _operation, _activation in (
    (ops.elu, lambda m, v, op: elu(m, v, op.alpha)),
    (ops.leaky_relu, lambda m, v, op: leaky_relu(m, v, op.negative_slope)),
):

    @register_moments(_class_of(_operation))
    def _with_slope(
        call: Call, of_normal: Callable[..., MeanAndVariance] = _activation
    ) -> Marginals:
        operation = call.operation
        return elementwise(call, call.inputs, lambda m, v: of_normal(m, v, operation))


for _operation, _activation in (
    (ops.exp, activations.exponential),
    (ops.hard_sigmoid, activations.hard_sigmoid),
    (ops.log_sigmoid, activations.log_sigmoid),
    (ops.relu, activations.relu),
    (ops.relu6, activations.relu6),
    (ops.selu, activations.selu),
    (ops.sigmoid, activations.sigmoid),
    (ops.silu, activations.silu),
    (ops.softplus, activations.softplus),
    (ops.tanh, activations.tanh),
):

    @register_moments(_class_of(_operation))
    def _function(
        call: Call, activation: Callable[..., Tensor] = _activation
    ) -> Marginals:
        return activated(call, activation, call.inputs)
