"""A distribution that Keras and TensorFlow accept as a tensor."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.private_apis import dispatch_by_type
from tfbbb.base.types import ArrayLike, Distribution, DType, Tensor

tfd = tfp.distributions

_ITS_OWN = {"_concrete_value", "_value", "is_tensor_like", "tensor_distribution"}
_ITS_OWN |= {"dtype", "get_shape", "ndim", "numpy", "shape"}


class _DistributionTensorType(type(tfd.Distribution), type(tfp.util.DeferredTensor)):  # type: ignore[misc]
    """Type of distributions with the operators and the conversion of tensors."""


@dispatch_by_type
class DistributionTensor(
    tfp.distributions.Distribution, metaclass=_DistributionTensorType
):
    """The output of a distribution layer: a distribution, convertible to a tensor.

    It is an instance of `tfp.distributions.Distribution` with every attribute of the
    distribution that it wraps. Wherever Keras or TensorFlow expect a tensor, it
    converts to `value`. So it passes through a `keras.Model` into the loss unchanged:
    `loss=lambda y, d: -d.log_prob(y)`.

    Example:

    >>> import tensorflow_probability as tfp
    >>> normal = tfp.distributions.Normal([1.0, 2.0], 0.5)
    >>> d = DistributionTensor(normal, normal.mean())
    >>> d.stddev().numpy(), (d + 1).numpy()
    (array([0.5, 0.5], dtype=float32), array([2., 3.], dtype=float32))
    >>> isinstance(d, tfp.distributions.Distribution)
    True

    Args:
        distribution: The distribution.
        value: The tensor that it converts to. This object has the same shape and dtype.
    """

    # `tf.is_tensor`, by which Keras tells tensors from other objects, looks for it.
    is_tensor_like = True

    def __init__(self, distribution: Distribution, value: Tensor):
        # Set directly: the forwarding below must not apply, and `tf.Module` must not
        # track the tensor.
        self.__dict__["tensor_distribution"] = distribution
        self.__dict__["_concrete_value"] = value

    def __getattribute__(self, name: str) -> Any:
        own = object.__getattribute__
        if name.startswith("__") or name in _ITS_OWN or name in own(self, "__dict__"):
            return own(self, name)
        distribution = own(self, "tensor_distribution")
        if hasattr(distribution, name):
            return getattr(distribution, name)
        return getattr(own(self, "_concrete_value"), name)

    def __setattr__(self, name: str, value: object) -> None:
        self.__dict__[name] = value

    def __array__(self, dtype: DType = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.numpy(), dtype)

    def __repr__(self) -> str:
        return f"<DistributionTensor of {self.tensor_distribution!r}>"

    __str__ = __repr__
    __hash__ = object.__hash__

    @property
    def shape(self) -> tf.TensorShape:
        return self._concrete_value.shape

    @property
    def dtype(self) -> tf.DType:
        return self._concrete_value.dtype

    @property
    def ndim(self) -> int:
        return self._concrete_value.shape.rank

    def get_shape(self) -> tf.TensorShape:
        return self._concrete_value.shape

    def numpy(self) -> np.ndarray:
        return self._concrete_value.numpy()

    def _value(
        self, dtype: DType = None, name: str | None = None, as_ref: bool = False
    ) -> Tensor:
        """Returns the tensor; by this name TensorFlow Probability asks for it."""
        return self._concrete_value


def as_distribution(value: Distribution) -> Distribution:
    """Returns the distribution that `value` wraps, or `value` itself."""
    return getattr(value, "tensor_distribution", value)


# Before it calls a loss, Keras casts predictions to its `floatx`, and drops or adds a
# last axis of length one to bring them to the rank of the targets.


@tf.experimental.dispatch_for_api(tf.cast, {"x": DistributionTensor})
def _cast(x: ArrayLike, dtype: DType, name: str | None = None) -> DistributionTensor:
    value = tf.cast(tf.convert_to_tensor(x), dtype, name)
    return DistributionTensor(x.tensor_distribution, value)


@tf.experimental.dispatch_for_api(tf.squeeze, {"input": DistributionTensor})
def _squeeze(
    input: Tensor, axis: int | Sequence[int] | None = None, name: str | None = None
) -> DistributionTensor:
    value = tf.squeeze(tf.convert_to_tensor(input), axis, name)
    distribution = input.tensor_distribution
    if _is_of_batch(input) and axis in (-1, [-1], input.ndim - 1, [input.ndim - 1]):
        distribution = distribution[..., 0]
    return DistributionTensor(distribution, value)


@tf.experimental.dispatch_for_api(tf.expand_dims, {"input": DistributionTensor})
def _expand_dims(
    input: Tensor, axis: int, name: str | None = None
) -> DistributionTensor:
    value = tf.expand_dims(tf.convert_to_tensor(input), axis, name)
    distribution = input.tensor_distribution
    if _is_of_batch(input) and axis in (-1, input.ndim):
        distribution = distribution[..., tf.newaxis]
    return DistributionTensor(distribution, value)


def _is_of_batch(x: DistributionTensor) -> bool:
    """Whether there is one number for each distribution of the batch.

    If so, the batch must have the shape of the targets: n targets [n, 1] and
    distributions [n] would broadcast to n^2 densities.
    """
    distribution = x.tensor_distribution
    return (
        distribution.event_shape.rank == 0 and distribution.batch_shape.rank == x.ndim
    )


@tfd.RegisterKL(DistributionTensor, tfd.Distribution)
def _kl_from(a: Distribution, b: Distribution, name: str | None = None) -> Tensor:
    return tfd.kl_divergence(a.tensor_distribution, as_distribution(b), name=name)


@tfd.RegisterKL(tfd.Distribution, DistributionTensor)
def _kl_to(a: Distribution, b: Distribution, name: str | None = None) -> Tensor:
    return tfd.kl_divergence(a, b.tensor_distribution, name=name)
