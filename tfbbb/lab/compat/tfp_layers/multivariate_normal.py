"""The multivariate normal of a vector of parameters."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import Distribution, Tensor, TensorFunction
from tfbbb.lab.compat.tfp_layers.parametric import Parametric

tfd = tfp.distributions
tfb = tfp.bijectors


@keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
class MultivariateNormalTriL(Parametric):
    """A normal vector with a full covariance: `N(loc, L @ L.T)`.

    Its `d + d * (d + 1) / 2` parameters are the mean and the lower triangle of L, whose
    diagonal is `softplus(params) + 1e-5`.

    Example:

    >>> import keras
    >>> size = MultivariateNormalTriL.params_size(2)
    >>> layer = MultivariateNormalTriL(2, convert_to_tensor_fn="mean")
    >>> layer(keras.ops.ones((7, size))).shape
    TensorShape([7, 2])

    Args:
        event_size: Length d of the vector.
    """

    def __init__(
        self,
        event_size: int,
        convert_to_tensor_fn: TensorFunction | str = tfd.Distribution.sample,
        validate_args: bool = False,
        **kwargs: Any,
    ):
        super().__init__(
            convert_to_tensor_fn,
            kwargs,
            event_size=event_size,
            validate_args=validate_args,
        )

    @staticmethod
    def new(
        params: Tensor,
        event_size: int,
        validate_args: bool = False,
        name: str | None = None,
    ) -> Distribution:
        """Returns the distribution of a tensor of parameters."""
        params = tf.convert_to_tensor(params, name="params")
        lower_triangle = tfb.FillScaleTriL(
            diag_shift=np.array(1e-5, params.dtype.as_numpy_dtype),
            validate_args=validate_args,
        )
        return tfd.MultivariateNormalTriL(
            loc=params[..., :event_size],
            scale_tril=lower_triangle(params[..., event_size:]),
            validate_args=validate_args,
        )

    @staticmethod
    def params_size(event_size: int, name: str | None = None) -> int:
        """Returns the number of parameters of one distribution."""
        return event_size + event_size * (event_size + 1) // 2
