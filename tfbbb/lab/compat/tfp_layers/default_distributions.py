"""The default posterior and prior of a weight."""

from collections.abc import Callable
from typing import Any

import keras
import ml_dtypes
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import (
    ArrayLike,
    Constraint,
    Initializer,
    Regularizer,
    Shape,
    Tensor,
)
from tfbbb.lab.compat.tfp_layers.function_config import read_values, to_config

tfd = tfp.distributions

_PACKAGE = "tfbbb.compat.tfp_layers"


@keras.saving.register_keras_serializable(package=_PACKAGE)
class LocScaleFn:
    """Makes the variables of a location and a scale: see `default_loc_scale_fn`."""

    def __init__(
        self,
        is_singular: bool = False,
        loc_initializer: Initializer = None,
        untransformed_scale_initializer: Initializer = None,
        loc_regularizer: Regularizer = None,
        untransformed_scale_regularizer: Regularizer = None,
        loc_constraint: Constraint = None,
        untransformed_scale_constraint: Constraint = None,
    ):
        self.is_singular = is_singular
        self.loc = {
            "initializer": keras.initializers.get(loc_initializer),
            "regularizer": keras.regularizers.get(loc_regularizer),
            "constraint": keras.constraints.get(loc_constraint),
        }
        self.untransformed_scale = {
            "initializer": keras.initializers.get(untransformed_scale_initializer),
            "regularizer": keras.regularizers.get(untransformed_scale_regularizer),
            "constraint": keras.constraints.get(untransformed_scale_constraint),
        }

    def __call__(
        self,
        dtype: tf.DType,
        shape: Shape,
        name: str,
        trainable: bool,
        add_variable_fn: Callable[..., Any],
    ) -> Any:
        """Returns the location and the scale, None where the law is singular."""
        options = {"shape": shape, "dtype": dtype, "trainable": trainable}
        loc = add_variable_fn(name=name + "_loc", **options, **_afresh(self.loc))
        if self.is_singular:
            return loc, None
        untransformed = add_variable_fn(
            name=name + "_untransformed_scale",
            **options,
            **_afresh(self.untransformed_scale),
        )
        smallest = tf.constant(ml_dtypes.finfo(dtype.as_numpy_dtype).eps, dtype)

        def scale(x: ArrayLike) -> Tensor:
            return smallest + tf.nn.softplus(x)

        return loc, tfp.util.DeferredTensor(untransformed, scale)

    def get_config(self) -> dict[str, Any]:
        return {
            "is_singular": self.is_singular,
            **{f"loc_{k}": to_config(v) for k, v in self.loc.items()},
            **{
                f"untransformed_scale_{k}": to_config(v)
                for k, v in self.untransformed_scale.items()
            },
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "LocScaleFn":
        return cls(**read_values(config))


def _afresh(options: dict[str, Any]) -> dict[str, Any]:
    # A random initializer without a seed draws the same values in every call, also for
    # other layers of the same shape.
    initializer = options["initializer"]
    if (
        isinstance(initializer, keras.initializers.Initializer)
        and initializer.get_config().get("seed", 0) is None
    ):
        initializer = initializer.clone()
    return {**options, "initializer": initializer}


@keras.saving.register_keras_serializable(package=_PACKAGE)
class MeanFieldNormalFn(LocScaleFn):
    """Makes a normal posterior: see `default_mean_field_normal_fn`."""

    def __call__(
        self,
        dtype: tf.DType,
        shape: Shape,
        name: str,
        trainable: bool,
        add_variable_fn: Callable[..., Any],
    ) -> tfp.distributions.Independent:
        """Returns the distribution of a weight of that shape."""
        loc, scale = super().__call__(dtype, shape, name, trainable, add_variable_fn)
        base = tfd.Deterministic(loc) if scale is None else tfd.Normal(loc, scale)
        return tfd.Independent(base, reinterpreted_batch_ndims=len(tuple(shape)))


def default_loc_scale_fn(
    is_singular: bool = False,
    loc_initializer: Initializer = keras.initializers.RandomNormal(stddev=0.1),  # noqa: B008
    untransformed_scale_initializer: Initializer = keras.initializers.RandomNormal(  # noqa: B008
        mean=-3.0, stddev=0.1
    ),
    loc_regularizer: Regularizer = None,
    untransformed_scale_regularizer: Regularizer = None,
    loc_constraint: Constraint = None,
    untransformed_scale_constraint: Constraint = None,
) -> LocScaleFn:
    """Returns a function that makes the variables of a location and a scale.

    `scale = eps + softplus(untransformed_scale)`

    Args:
        is_singular: Whether there is no scale: the law is a point.
        loc_initializer: Initial values of the location.
        untransformed_scale_initializer: Initial values before the softplus.
        loc_regularizer: Penalty on the location.
        untransformed_scale_regularizer: Penalty on the values before the softplus.
        loc_constraint: Projection of the location after each update.
        untransformed_scale_constraint: Projection of the values before the softplus.

    Returns:
        A function of `dtype, shape, name, trainable, add_variable_fn`.
    """
    return LocScaleFn(
        is_singular,
        loc_initializer,
        untransformed_scale_initializer,
        loc_regularizer,
        untransformed_scale_regularizer,
        loc_constraint,
        untransformed_scale_constraint,
    )


def default_mean_field_normal_fn(
    is_singular: bool = False,
    loc_initializer: Initializer = keras.initializers.RandomNormal(stddev=0.1),  # noqa: B008
    untransformed_scale_initializer: Initializer = keras.initializers.RandomNormal(  # noqa: B008
        mean=-3.0, stddev=0.1
    ),
    loc_regularizer: Regularizer = None,
    untransformed_scale_regularizer: Regularizer = None,
    loc_constraint: Constraint = None,
    untransformed_scale_constraint: Constraint = None,
) -> MeanFieldNormalFn:
    """Returns a function that makes the posterior of a weight: independent normals.

    `q(w) = prod_i N(w_i | loc_i, scale_i^2)`,
    `scale = eps + softplus(untransformed_scale)`

    Args:
        is_singular: Whether the posterior is the point `loc`.
        loc_initializer: Initial values of the location.
        untransformed_scale_initializer: Initial values before the softplus.
        loc_regularizer: Penalty on the location.
        untransformed_scale_regularizer: Penalty on the values before the softplus.
        loc_constraint: Projection of the location after each update.
        untransformed_scale_constraint: Projection of the values before the softplus.

    Returns:
        A function of `dtype, shape, name, trainable, add_variable_fn`.
    """
    return MeanFieldNormalFn(
        is_singular,
        loc_initializer,
        untransformed_scale_initializer,
        loc_regularizer,
        untransformed_scale_regularizer,
        loc_constraint,
        untransformed_scale_constraint,
    )


@keras.saving.register_keras_serializable(package=_PACKAGE)
def default_multivariate_normal_fn(
    dtype: tf.DType, shape: Shape, name: str, trainable: bool, add_variable_fn: Any
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
