"""The Kullback-Leibler divergence from a prior as a penalty."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import (
    ArrayLike,
    Config,
    Distribution,
    Json,
    Shape,
    Tensor,
    TensorFunction,
)
from tfbbb.lab.compat.tfp_layers.adopted_variable import adopt, variables_of
from tfbbb.lab.compat.tfp_layers.distribution_tensor import as_distribution
from tfbbb.lab.compat.tfp_layers.function_config import (
    ReadsConfig,
    full_precision,
    to_config,
)

tfd = tfp.distributions

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")


def divergence(
    a: Distribution,
    b: Distribution,
    *,
    use_exact_kl: bool,
    test_points_reduce_axis: int | Sequence[int] | None = (),
    test_points_fn: TensorFunction = tf.convert_to_tensor,
    weight: ArrayLike = None,
) -> tf.Tensor:
    """Returns `weight * KL(a || b)`, summed over batches: a scalar."""
    if use_exact_kl:
        kl = tfd.kl_divergence(as_distribution(a), as_distribution(b))
    else:
        z = test_points_fn(a)
        kl = tf.reduce_mean(a.log_prob(z) - b.log_prob(z), axis=test_points_reduce_axis)
    if weight is not None:
        kl = tf.cast(weight, kl.dtype) * kl
    return tf.reduce_sum(kl)


@_register
class KLDivergenceRegularizer(ReadsConfig, keras.regularizers.Regularizer):
    """Penalises a distribution-valued layer by its divergence from a prior.

    `weight * sum_batch KL(a || distribution_b)`, where a is the output of the layer
    whose `activity_regularizer` this is. Keras divides that by the number of rows.

    Each call counts the divergence once. `tfp.layers` counts it twice: for legacy Keras
    its distribution layers have two outputs, the distribution and its tensor, and both
    are penalised. Pass twice the `weight` for the loss of such a program.

    A model with a prior of constants is saved by the prior's class and arguments. One
    with a function is pickled and loads with
    `keras.saving.load_model(path, safe_mode=False)`.

    Args:
        distribution_b: The prior: a distribution, or a function without arguments that
            returns one.
        use_exact_kl: Whether the divergence is computed in closed form. Else it is
            estimated at the tensor that the layer's output converts to.
        test_points_reduce_axis: Axes over which an estimate is averaged; None is all
            of them, `()` none.
        test_points_fn: Function of a that returns the points of an estimate.
        weight: A factor; None is 1.
    """

    def __init__(
        self,
        distribution_b: Distribution,
        use_exact_kl: bool = False,
        test_points_reduce_axis: int | Sequence[int] | None = (),
        test_points_fn: TensorFunction = tf.convert_to_tensor,
        weight: ArrayLike = None,
    ):
        self.distribution_b = distribution_b
        self.use_exact_kl = use_exact_kl
        self.test_points_reduce_axis = test_points_reduce_axis
        self.test_points_fn = test_points_fn
        self.weight = weight

    def __call__(self, distribution_a: Distribution) -> tf.Tensor:
        if not isinstance(distribution_a, tfd.Distribution):
            raise TypeError(
                "A divergence from a prior needs a distribution: the layer must "
                "return one, as `DistributionLambda` does. "
                f"Received: {distribution_a!r}"
            )
        prior = self.distribution_b
        if not isinstance(prior, tfd.Distribution):
            prior = prior()
        return divergence(
            distribution_a,
            prior,
            use_exact_kl=self.use_exact_kl,
            test_points_reduce_axis=self.test_points_reduce_axis,
            test_points_fn=self.test_points_fn,
            weight=self.weight,
        )

    def get_config(self) -> Config:
        config = {
            "distribution_b": to_config(self.distribution_b),
            "use_exact_kl": self.use_exact_kl,
            "test_points_reduce_axis": _plain(self.test_points_reduce_axis),
            "weight": _plain(self.weight),
        }
        if self.test_points_fn is not tf.convert_to_tensor:
            config["test_points_fn"] = to_config(self.test_points_fn)
        return config


@_register
class KLDivergenceAddLoss(ReadsConfig, keras.Layer):
    """Returns its input, a distribution, and adds the divergence from a prior as loss.

    `weight * KL(input || distribution_b)`

    Args:
        distribution_b: The prior: a distribution, or a function without arguments that
            returns one.
        use_exact_kl: Whether the divergence is computed in closed form and summed over
            rows. Else it is estimated at the tensor that the input converts to.
        test_points_reduce_axis: Axes over which an estimate is averaged; None is all
            of them, `()` none.
        test_points_fn: Function of the input that returns the points of an estimate.
        weight: A factor; None is 1.
        **kwargs: Options of `keras.Layer`.
    """

    def __init__(
        self,
        distribution_b: Distribution,
        use_exact_kl: bool = False,
        test_points_reduce_axis: int | Sequence[int] | None = None,
        test_points_fn: TensorFunction = tf.convert_to_tensor,
        weight: ArrayLike = None,
        **kwargs: Any,
    ):
        super().__init__(dtype=full_precision(kwargs.pop("dtype", None)), **kwargs)
        self._penalty = KLDivergenceRegularizer(
            distribution_b,
            use_exact_kl,
            test_points_reduce_axis,
            test_points_fn,
            weight,
        )
        adopt(self, variables_of(distribution_b))
        self.supports_jit = False

    def call(self, distribution_a: Distribution) -> Tensor:
        self.add_loss(self._penalty(distribution_a))
        return distribution_a

    def get_config(self) -> Config:
        return {**super().get_config(), **self._penalty.get_config()}

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def compute_output_spec(self, distribution_a: Distribution) -> keras.KerasTensor:
        # Keras may pass a shape to build the layer; then there is no distribution.
        return keras.KerasTensor(distribution_a.shape, distribution_a.dtype)


def _plain(value: ArrayLike) -> Json:
    return None if value is None else np.asarray(value).tolist()
