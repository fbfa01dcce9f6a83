"""The sparse variational Gaussian process as a layer."""

from collections.abc import Callable
from typing import Self

import keras
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import (
    ArrayLike,
    Config,
    Distribution,
    Initializer,
    Shape,
    Tensor,
    TensorFunction,
)
from tfbbb.lab.compat.tfp_layers.adopted_variable import VariableReference
from tfbbb.lab.compat.tfp_layers.distribution_lambda import DistributionLambda
from tfbbb.lab.compat.tfp_layers.function_config import (
    from_config,
    read_values,
    to_config,
)

tfd = tfp.distributions
tfb = tfp.bijectors

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
_INITIALIZERS = (
    "inducing_index_points_initializer",
    "unconstrained_observation_noise_variance_initializer",
    "variational_inducing_observations_scale_initializer",
)


@_register
class VariationalGaussianProcess(DistributionLambda):
    """A Gaussian process at the inputs, known at inducing points only (Titsias 2009).

    `f ~ GP(mean_fn, kernel)`, `q(f(z)) = N(loc, S @ S.T)` at inducing points z.

    Train it with `loss=lambda y, d: d.variational_loss(y, kl_weight=batch_size / N)`.

    Args:
        num_inducing_points: Number of inducing points.
        kernel_provider: Keras layer with a property `kernel`, a
            `tfp.math.psd_kernels.PositiveSemidefiniteKernel` of the layer's variables.
        event_shape: Shape of the function's values: one process for each element.
        inducing_index_points_initializer: Initial inducing points, best scattered near
            the data.
        unconstrained_observation_noise_variance_initializer: Initial value of the
            variable whose softplus is the variance of the noise; None for no noise.
        variational_inducing_observations_scale_initializer: Initial S; the default is
            `1e-5` times the identity.
        mean_fn: Function of the inputs that returns the mean; the default is a
            constant that is trained.
        jitter: Added to the diagonals of covariances.
        convert_to_tensor_fn: Function that converts the distribution to a tensor, or
            its name: see `DistributionLambda`.
        name: Name of the layer.
    """

    def __init__(
        self,
        num_inducing_points: int,
        kernel_provider: keras.Layer,
        event_shape: Shape = (1,),
        inducing_index_points_initializer: Initializer = None,
        unconstrained_observation_noise_variance_initializer: Initializer = (
            keras.initializers.Constant(-10.0)  # noqa: B008
        ),
        variational_inducing_observations_scale_initializer: Initializer = None,
        mean_fn: Callable[[Tensor], Tensor] | None = None,
        jitter: float = 1e-6,
        convert_to_tensor_fn: TensorFunction | str = tfd.Distribution.sample,
        name: str | None = None,
    ):
        super().__init__(
            self._make, convert_to_tensor_fn, dtype=kernel_provider.dtype, name=name
        )
        given = locals()
        self._initializers = {
            key: keras.initializers.get(given[key]) for key in _INITIALIZERS
        }
        self._num_inducing_points = num_inducing_points
        self._kernel_provider = kernel_provider
        self._event_shape = tuple(tf.TensorShape(event_shape).as_list())
        self._mean_fn = mean_fn
        self._jitter = jitter

    def build(self, input_shape: Shape) -> None:
        with tf.init_scope():
            if not self._kernel_provider.built:
                self._kernel_provider.build(input_shape)
        n = self._num_inducing_points
        points, noise, scale = (self._initializers[key] for key in _INITIALIZERS)
        if self._mean_fn is None:
            self.mean = self._add("mean", (), keras.initializers.Constant(0.0))
        self._noise_variance: float | Tensor = 0.0
        if noise is not None:
            self._noise_variance = tfp.util.DeferredTensor(
                self._add("observation_noise_variance", (), noise), tf.nn.softplus
            )
        features = self._kernel_provider.kernel.feature_ndims
        self._points = self._add(
            "inducing_index_points",
            (*self._event_shape, n, *input_shape[-features:]),
            points,
        )
        self._loc = self._add(
            "variational_inducing_observations_loc", (*self._event_shape, n), "zeros"
        )
        if scale is None:
            identity = np.broadcast_to(1e-5 * np.eye(n), (*self._event_shape, n, n))
            scale = keras.initializers.Constant(identity)
        self._scale = self._add(
            "variational_inducing_observations_scale", (*self._event_shape, n, n), scale
        )
        self.built = True

    @staticmethod
    def new(
        x: ArrayLike,
        kernel_provider: keras.Layer,
        event_shape: Shape,
        inducing_index_points: Tensor,
        mean_fn: Callable[[Tensor], Tensor] | None,
        variational_inducing_observations_loc: Tensor,
        variational_inducing_observations_scale: Tensor,
        observation_noise_variance: float | Tensor,
        jitter: float = 1e-6,
        name: str | None = None,
    ) -> Distribution:
        """Returns the distribution of the process at the points x."""
        process = tfd.VariationalGaussianProcess(
            kernel=kernel_provider.kernel,
            index_points=x,
            inducing_index_points=inducing_index_points,
            variational_inducing_observations_loc=variational_inducing_observations_loc,
            variational_inducing_observations_scale=(
                variational_inducing_observations_scale
            ),
            mean_fn=mean_fn,
            observation_noise_variance=observation_noise_variance,
            jitter=jitter,
        )
        # Points first, elements of the function's value last.
        transpose = tfb.Transpose(rightmost_transposed_ndims=2)
        distribution = tfd.TransformedDistribution(
            tfd.Independent(process, reinterpreted_batch_ndims=1), bijector=transpose
        )

        def variational_loss(y: ArrayLike, kl_weight: ArrayLike = 1.0) -> Tensor:
            # Keras passes targets in `floatx`, whatever the dtype of the model.
            y, kl_weight = tf.cast(y, process.dtype), tf.cast(kl_weight, process.dtype)
            return process.variational_loss(transpose.forward(y), kl_weight=kl_weight)

        distribution.variational_loss = variational_loss
        distribution.surrogate_posterior_kl_divergence_prior = (
            process.surrogate_posterior_kl_divergence_prior
        )
        return distribution

    def get_config(self) -> Config:
        config = super(DistributionLambda, self).get_config()
        # The kernel's dtype is the layer's.
        for key in ("dtype", "trainable"):
            del config[key]
        return {
            **config,
            "num_inducing_points": self._num_inducing_points,
            "kernel_provider": to_config(self._kernel_provider),
            "event_shape": list(self._event_shape),
            **{key: to_config(value) for key, value in self._initializers.items()},
            "mean_fn": to_config(self._mean_fn),
            "jitter": float(self._jitter),
            **self._serialized_conversion(),
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        read = {
            key: from_config(value)
            for key, value in config.items()
            if key not in _INITIALIZERS
        }
        return cls(**{**read_values(config), **read})

    def _add(
        self, name: str, shape: tuple, initializer: Initializer
    ) -> VariableReference:
        return VariableReference(
            self.add_weight(
                name=name, shape=shape, initializer=initializer, autocast=False
            )
        )

    def _make(self, x: ArrayLike) -> tfp.distributions.Distribution:
        return type(self).new(
            x,
            kernel_provider=self._kernel_provider,
            event_shape=self._event_shape,
            inducing_index_points=self._points,
            mean_fn=self._mean_fn or (lambda _: tf.convert_to_tensor(self.mean)),
            variational_inducing_observations_loc=self._loc,
            variational_inducing_observations_scale=self._scale,
            observation_noise_variance=self._noise_variance,
            jitter=self._jitter,
        )
