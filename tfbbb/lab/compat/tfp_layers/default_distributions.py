"""The default posterior and prior of a weight."""

from collections.abc import Callable
from typing import Any

import keras
import ml_dtypes
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.documented_arguments import document_inherited_arguments
from tfbbb.base.types import (
    ArrayLike,
    Config,
    Constraint,
    Initializer,
    Options,
    Regularizer,
    Shape,
    Tensor,
)
from tfbbb.lab.compat.tfp_layers.function_config import (
    read_values,
    to_config,
    variable_options,
)

tfd = tfp.distributions

_PACKAGE = "tfbbb.compat.tfp_layers"


@keras.saving.register_keras_serializable(package=_PACKAGE)
class LocScaleFn:
    """Makes the variables of a location and a scale, as `default_loc_scale_fn`.

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

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        document_inherited_arguments(cls)

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
        self.loc = variable_options(loc_initializer, loc_regularizer, loc_constraint)
        self.untransformed_scale = variable_options(
            untransformed_scale_initializer,
            untransformed_scale_regularizer,
            untransformed_scale_constraint,
        )

    def __call__(
        self,
        dtype: tf.DType,
        shape: Shape,
        name: str,
        trainable: bool,
        add_variable_fn: Callable[..., Tensor],
    ) -> tuple[Tensor, Tensor | None]:
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

    def get_config(self) -> Config:
        return {
            "is_singular": self.is_singular,
            **{f"loc_{k}": to_config(v) for k, v in self.loc.items()},
            **{
                f"untransformed_scale_{k}": to_config(v)
                for k, v in self.untransformed_scale.items()
            },
        }

    @classmethod
    def from_config(cls, config: Config) -> "LocScaleFn":
        return cls(**read_values(config))


def _afresh(options: Options) -> Options:
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
    """Makes the posterior of a weight, as `default_mean_field_normal_fn`.

    `q(w) = prod_i N(w_i | loc_i, scale_i^2)`,
    `scale = eps + softplus(untransformed_scale)`
    """

    def __call__(
        self,
        dtype: tf.DType,
        shape: Shape,
        name: str,
        trainable: bool,
        add_variable_fn: Callable[..., Tensor],
    ) -> tfp.distributions.Independent:
        """Returns the distribution of a weight of that shape."""
        loc, scale = super().__call__(dtype, shape, name, trainable, add_variable_fn)
        base = tfd.Deterministic(loc) if scale is None else tfd.Normal(loc, scale)
        return tfd.Independent(base, reinterpreted_batch_ndims=len(tuple(shape)))


# The names of these classes in `tfp.layers`, where functions make their objects.
default_loc_scale_fn = LocScaleFn
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
