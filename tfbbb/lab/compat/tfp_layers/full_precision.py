"""Dtypes and sizes of layers that hold or make distributions."""

import keras
import tensorflow as tf

from tfbbb.base.types import DType, Shape, Tensor


def full_precision(dtype: DType) -> Tensor:
    """Returns the policy of `dtype` without its half precision for computations.

    Under `mixed_float16` or `mixed_bfloat16` densities and divergences stay in
    float32: sums over thousands of weights or pixels do not survive ten bits.
    """
    if dtype is None:
        dtype = keras.config.dtype_policy()
    policy = keras.dtype_policies.get(dtype)
    if policy.compute_dtype == policy.variable_dtype:
        return policy
    return keras.DTypePolicy(policy.variable_dtype)


def floating_dtype(layer: keras.Layer) -> tf.DType:
    """Returns the dtype of a layer's weights; raises TypeError if it is an integer."""
    dtype = tf.as_dtype(layer.variable_dtype)
    if not dtype.is_floating:
        raise TypeError(
            "The weights of a variational layer are floating-point numbers. "
            f"Received: dtype={dtype.name!r}"
        )
    return dtype


def last_size(layer: keras.Layer, input_shape: Shape) -> int:
    """Returns the size of the last axis, which becomes that of the layer's inputs."""
    size = input_shape[-1]
    if size is None:
        raise ValueError(
            f"The last dimension of the input of '{layer.name}' must be known. "
            f"Received: input_shape={input_shape}"
        )
    layer.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-1: size})
    return int(size)
