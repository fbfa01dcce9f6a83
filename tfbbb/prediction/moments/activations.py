"""Means and variances of an activation, by its function."""

from collections.abc import Callable

import keras

from tfbbb.base.types import Tensor
from tfbbb.prediction.moments.exponential import elu, exponential, selu
from tfbbb.prediction.moments.marginals import Marginals, OfNormal
from tfbbb.prediction.moments.quadrature import (
    QUADRATURE_ERROR,
    by_quadrature,
    gelu,
)
from tfbbb.prediction.moments.rectified import (
    clipped,
    hard_sigmoid,
    hard_tanh,
    leaky_relu,
    rectified,
)
from tfbbb.prediction.moments.registry import Call

NOT_NORMAL = "The inputs of its activation are taken as normal, and they are not quite."

# By function: mean and variance of a normal input, and why they are not exact.
_ACTIVATIONS: dict[Callable[..., Tensor], tuple[OfNormal, str]] = {}


def register_activation(
    function: Callable[..., Tensor], why: str = ""
) -> Callable[[OfNormal], OfNormal]:
    """Registers mean and variance of an elementwise activation of a normal input.

    `mean, variance = of_normal(mean, variance)`: float32 tensors of the same shape. The
    variance may be 0; then the result is `function(mean)` and 0.

    Example:

    >>> import tensorflow as tf
    >>> from tfbbb.prediction.moments import register_activation
    >>> def square(x):
    ...     return x * x
    >>> @register_activation(square)
    ... def square_of_normal(mean, variance):
    ...     m2 = tf.square(mean)
    ...     return m2 + variance, 2.0 * tf.square(variance) + 4.0 * m2 * variance

    Args:
        function: The function that is the `activation` of layers.
        why: A sentence that says why they are not exact, empty if they are.
    """

    def register(of_normal: OfNormal) -> OfNormal:
        _ACTIVATIONS[function] = of_normal, why
        return of_normal

    return register


def activated(
    call: Call, function: Callable[..., Tensor], inputs: Marginals
) -> Marginals:
    """Returns the marginals after a layer's activation."""
    if function is None or function is keras.activations.linear:
        return inputs
    if isinstance(function, keras.layers.Layer):
        call.refuse(
            "its activation is a layer; put the activation layer after it instead"
        )
    known = _ACTIVATIONS.get(function)
    if known is None:
        name = getattr(function, "__name__", repr(function))
        call.refuse(f"there is no rule for its activation '{name}'")
    return elementwise(call, inputs, *known)


def elementwise(
    call: Call, inputs: Marginals, of_normal: OfNormal, why: str = ""
) -> Marginals:
    """Returns the marginals after an elementwise function of normal elements."""
    if not inputs.normal:
        call.approximate(NOT_NORMAL)
    if why:
        call.approximate(why)
    mean, variance = of_normal(inputs.mean, inputs.variance)
    return inputs.replace(mean=mean, variance=variance, normal=False)


for _function, _of_normal in (
    (keras.activations.relu, rectified),
    (keras.activations.leaky_relu, lambda m, v: leaky_relu(m, v, 0.2)),
    (keras.activations.relu6, lambda m, v: clipped(m, v, 6.0)),
    (keras.activations.hard_sigmoid, hard_sigmoid),
    (keras.activations.hard_tanh, hard_tanh),
    (keras.activations.elu, elu),
    (keras.activations.selu, selu),
    (keras.activations.exponential, exponential),
):
    register_activation(_function)(_of_normal)

for _function in (
    keras.activations.log_sigmoid,
    keras.activations.mish,
    keras.activations.sigmoid,
    keras.activations.silu,
    keras.activations.softplus,
    keras.activations.tanh,
):
    register_activation(_function, QUADRATURE_ERROR)(by_quadrature(_function))
register_activation(keras.activations.gelu, QUADRATURE_ERROR)(gelu)
