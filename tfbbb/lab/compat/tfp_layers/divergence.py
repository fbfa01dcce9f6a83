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
from tfbbb.lab.compat.tfp_layers.full_precision import full_precision
from tfbbb.lab.compat.tfp_layers.function_config import from_config, to_config

tfd = tfp.distributions

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")

# A prior that is a model has an input, which it ignores.
_NO_INPUT = (1, 1)


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
class KLDivergenceRegularizer(keras.regularizers.Regularizer):
    """Penalises a distribution-valued layer by its divergence from a prior.

    `weight * sum_batch KL(a || distribution_b)`, where a is the output of the layer
    whose `activity_regularizer` this is. Keras divides that by the number of rows.

    Each call counts the divergence once. `tfp.layers` counts it twice: for legacy Keras
    its distribution layers have two outputs, the distribution and its tensor, and both
    are penalised. Pass twice the `weight` for the loss of such a program.

    A model with a prior of constants is saved by the prior's class and arguments. One
    with a function, or with a prior of variables, is pickled and loads with
    `keras.saving.load_model(path, safe_mode=False)`.

    Args:
        distribution_b: The prior: a distribution, a function without arguments that
            returns one, or a `keras.Model` that does, whatever its input.
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
        return divergence(
            distribution_a,
            self._prior(),
            use_exact_kl=self.use_exact_kl,
            test_points_reduce_axis=self.test_points_reduce_axis,
            test_points_fn=self.test_points_fn,
            weight=self.weight,
        )

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables of the prior and of the weight."""
        return variables_of([self.distribution_b, self.weight])

    def get_config(self) -> Config:
        axis, weight = self.test_points_reduce_axis, self.weight
        config = {
            "distribution_b": to_config(self.distribution_b),
            "use_exact_kl": self.use_exact_kl,
            "test_points_reduce_axis": _plain(axis),
            "weight": to_config(weight) if variables_of(weight) else _plain(weight),
        }
        if self.test_points_fn is not tf.convert_to_tensor:
            config["test_points_fn"] = to_config(self.test_points_fn)
        return config

    @classmethod
    def from_config(cls, config: Config) -> "KLDivergenceRegularizer":
        return cls(**{key: from_config(value) for key, value in config.items()})

    def _prior(self) -> Distribution:
        prior = self.distribution_b
        if isinstance(prior, keras.Model):
            return prior(tf.zeros(_NO_INPUT))
        if callable(prior) and not isinstance(prior, tfd.Distribution):
            return prior()
        return prior


@_register
class KLDivergenceAddLoss(keras.Layer):
    """Returns its input, a distribution, and adds the divergence from a prior as loss.

    `weight * KL(input || distribution_b)`

    Args:
        distribution_b: The prior: a distribution, a function without arguments that
            returns one, or a `keras.Model` that does, whatever its input.
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
        self._regularizer = KLDivergenceRegularizer(
            distribution_b,
            use_exact_kl=use_exact_kl,
            test_points_reduce_axis=test_points_reduce_axis,
            test_points_fn=test_points_fn,
            weight=weight,
        )
        if isinstance(distribution_b, keras.Layer):
            self._prior = distribution_b
        adopt(self, self._regularizer.variables)
        self.supports_jit = False

    def build(self, input_shape: Shape) -> None:
        prior = self._regularizer.distribution_b
        if isinstance(prior, keras.Layer) and not prior.built:
            with tf.init_scope():
                prior.build(_NO_INPUT)
        self.built = True

    def call(self, distribution_a: Distribution) -> Tensor:
        self.add_loss(self._regularizer(distribution_a))
        return distribution_a

    def get_config(self) -> Config:
        return {**super().get_config(), **self._regularizer.get_config()}

    @classmethod
    def from_config(cls, config: Config) -> "KLDivergenceAddLoss":
        return cls(**{key: from_config(value) for key, value in config.items()})

    def compute_output_spec(self, distribution_a: Distribution) -> keras.KerasTensor:
        # Keras may pass a shape to build the layer; then there is no distribution.
        spec = keras.KerasTensor(distribution_a.shape, distribution_a.dtype)
        if hasattr(distribution_a, "made_of"):
            spec.made_of = distribution_a.made_of
        return spec


def _plain(value: ArrayLike) -> Json:
    return None if value is None else np.asarray(value).tolist()
