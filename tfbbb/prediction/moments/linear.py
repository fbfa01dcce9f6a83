"""The shared part of the rules of layers that are linear in their kernel."""

from collections.abc import Callable

import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.prediction.moments.marginals import Marginals
from tfbbb.prediction.moments.registry import Call

CORRELATED = "Its inputs are taken as independent of each other, and they are not."


def require_independence(call: Call, inputs: Marginals) -> None:
    """Notes that a sum over inputs takes correlated inputs as independent."""
    if not inputs.is_independent:
        call.approximate(CORRELATED)


def through_fixed_kernel(
    call: Call,
    inputs: Marginals,
    kernel: Callable[[], Tensor],
    linear: Callable[[Tensor, Tensor], Tensor],
    bias: Tensor = None,
) -> Marginals:
    """Returns the marginals of `linear(x, W) + b` with a certain W and b.

        E = linear(m, W) + b,   Var = linear(v, W^2)

    which is exact for inputs that are independent of each other.
    """
    if getattr(call.operation, "quantization_mode", None):
        call.refuse("its kernel is quantised")
    require_independence(call, inputs)
    square = call.of_weights("kernel_square", lambda: tf.square(_float32(kernel())))
    mean = linear(inputs.mean, _float32(kernel()))
    if bias is not None:
        mean += _float32(bias)
    variance = linear(inputs.variance, square)
    return inputs.replace(mean=mean, variance=variance, independent=False)


def _float32(values: ArrayLike) -> Tensor:
    return tf.cast(tf.convert_to_tensor(values), tf.float32)
