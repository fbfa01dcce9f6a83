"""The default posterior and prior of a weight."""

from collections.abc import Callable

import keras
import ml_dtypes
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import (
    Config,
    Constraint,
    Initializer,
    Options,
    Regularizer,
    Shape,
    Tensor,
)
from tfbbb.lab.compat.tfp_layers.function_config import ReadsConfig, to_config

tfd = tfp.distributions

_PACKAGE = "tfbbb.compat.tfp_layers"


@keras.saving.register_keras_serializable(package=_PACKAGE)
class MeanFieldNormalFn(ReadsConfig):
    """Makes the posterior of a weight, as `default_mean_field_normal_fn`.

    `q(w) = prod_i N(w_i | loc_i, scale_i^2)`,
    `scale = eps + softplus(untransformed_scale)`

    An object is a function of `dtype, shape, name, trainable, add_variable_fn`.

    Args:
        is_singular: Whether there is no scale: the law is a point.
        loc_initializer: Initial values of the location.
        untransformed_scale_initializer: Initial values before the softplus.
        loc_regularizer: Penalty on the location.
        untransformed_scale_regularizer: Penalty on the values before the softplus.
        loc_constraint: Projection of the location after each update.
        untransformed_scale_constraint: Projection of the values before the softplus.
    """

    def __init__(
        self,
        is_singular: bool = False,
        loc_initializer: Initializer = keras.initializers.RandomNormal(stddev=0.1),  # noqa: B008
        untransformed_scale_initializer: Initializer = keras.initializers.RandomNormal(  # noqa: B008
            mean=-3.0, stddev=0.1
        ),
        loc_regularizer: Regularizer = None,
        untransformed_scale_regularizer: Regularizer = None,
        loc_constraint: Constraint = None,
        untransformed_scale_constraint: Constraint = None,
    ):
        self.is_singular = is_singular
        given = locals()
        self.options: dict[str, Options] = {
            kind: {
                what: getattr(keras, f"{what}s").get(given[f"{kind}_{what}"])
                for what in ("initializer", "regularizer", "constraint")
            }
            for kind in ("loc", "untransformed_scale")
        }

    def __call__(
        self,
        dtype: tf.DType,
        shape: Shape,
        name: str,
        trainable: bool,
        add_variable_fn: Callable[..., Tensor],
    ) -> tfp.distributions.Independent:
        """Returns the distribution of a weight of that shape."""

        def add(kind: str) -> Tensor:
            options = self.options[kind]
            initializer = options["initializer"]
            # A random initializer without a seed draws the same values in every call,
            # also for other layers of the same shape.
            if (
                isinstance(initializer, keras.initializers.Initializer)
                and initializer.get_config().get("seed", 0) is None
            ):
                initializer = initializer.clone()
            return add_variable_fn(
                name=f"{name}_{kind}",
                shape=shape,
                dtype=dtype,
                trainable=trainable,
                **{**options, "initializer": initializer},
            )

        loc = add("loc")
        base = tfd.Deterministic(loc)
        if not self.is_singular:
            smallest = tf.constant(ml_dtypes.finfo(dtype.as_numpy_dtype).eps, dtype)
            scale = tfp.util.DeferredTensor(
                add("untransformed_scale"), lambda x: smallest + tf.nn.softplus(x)
            )
            base = tfd.Normal(loc, scale)
        return tfd.Independent(base, reinterpreted_batch_ndims=len(tuple(shape)))

    def get_config(self) -> Config:
        return {
            "is_singular": self.is_singular,
            **{
                f"{kind}_{name}": to_config(value)
                for kind, options in self.options.items()
                for name, value in options.items()
            },
        }


# The name in `tfp.layers`, where a function makes the object.
default_mean_field_normal_fn = MeanFieldNormalFn


@keras.saving.register_keras_serializable(package=_PACKAGE)
def default_multivariate_normal_fn(
    dtype: tf.DType,
    shape: Shape,
    name: str,
    trainable: bool,
    add_variable_fn: Callable[..., Tensor],
) -> tfp.distributions.Independent:
    """Returns the default prior of a weight: independent standard normals.

    `p(w) = prod_i N(w_i | 0, 1)`

    Args:
        dtype: TensorFlow dtype of the weight.
        shape: Shape of the weight.
        name: Unused: there are no variables.
        trainable: Unused.
        add_variable_fn: Unused.
    """
    del name, trainable, add_variable_fn
    return tfd.Independent(
        tfd.Normal(tf.zeros(shape, dtype), dtype.as_numpy_dtype(1)),
        reinterpreted_batch_ndims=len(tuple(shape)),
    )
