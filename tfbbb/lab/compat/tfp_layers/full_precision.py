"""The dtype policy of layers that hold or make distributions."""

import keras

from tfbbb.base.types import DType, Tensor


def full_precision(dtype: DType) -> Tensor:
    """Returns the policy of `dtype` without its half precision for computations.

    Under `mixed_float16` or `mixed_bfloat16` densities and divergences stay in
    float32: sums over thousands of weights or pixels do not survive ten bits.

    Args:
        dtype: A dtype, a policy, or None for the global policy.
    """
    if dtype is None:
        dtype = keras.config.dtype_policy()
    policy = keras.dtype_policies.get(dtype)
    if policy.compute_dtype == policy.variable_dtype:
        return policy
    return keras.DTypePolicy(policy.variable_dtype)
