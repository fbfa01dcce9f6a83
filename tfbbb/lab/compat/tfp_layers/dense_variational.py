"""The dense layer whose weights have one joint posterior."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.types import (
    Activation,
    ArrayLike,
    Config,
    Distribution,
    Regularizer,
    Shape,
    Tensor,
)
from tfbbb.lab.compat.tfp_layers.adopted_variable import (
    adopt,
    variables_of,
    warn_of_others,
)
from tfbbb.lab.compat.tfp_layers.distribution_tensor import DistributionTensor
from tfbbb.lab.compat.tfp_layers.divergence import divergence
from tfbbb.lab.compat.tfp_layers.function_config import (
    ReadsConfig,
    activity_regularizer_config,
    to_config,
)
from tfbbb.lab.compat.tfp_layers.weight_posterior import known_size


@keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
class DenseVariational(ReadsConfig, keras.Layer):
    """A dense layer that draws kernel and bias from one joint posterior in every call.

    `output = activation(input @ kernel + bias)`, `[kernel, bias] ~ q`

    Each call adds `kl_weight * KL(q || p)` to the losses.

    Example:

    >>> import keras, tensorflow_probability as tfp
    >>> from tfbbb.lab.compat.tfp_layers import MultivariateNormalTriL, VariableLayer
    >>> def posterior(kernel_size, bias_size=0, dtype=None):
    ...     n = kernel_size + bias_size
    ...     size = MultivariateNormalTriL.params_size(n)
    ...     return keras.Sequential([
    ...         VariableLayer(size, dtype=dtype), MultivariateNormalTriL(n)])
    >>> def prior(kernel_size, bias_size=0, dtype=None):
    ...     n = kernel_size + bias_size
    ...     return lambda _: tfp.distributions.MultivariateNormalDiag(
    ...         keras.ops.zeros(n, dtype))
    >>> layer = DenseVariational(2, posterior, prior, kl_weight=1 / 100)
    >>> layer(keras.ops.ones((5, 3))).shape
    TensorShape([5, 2])

    Args:
        units: Number of outputs.
        make_posterior_fn: Function of `kernel_size, bias_size, dtype` that returns a
            function, such as a model, of the inputs that returns the posterior of all
            weights in one vector, as a distribution layer does.
        make_prior_fn: The same for the prior, which may be any distribution. The layer
            trains and saves each `tf.Variable` that posterior or prior reads.
        kl_weight: Weight of the divergence in the loss, `1/N` for N training rows; None
            is 1.
        kl_use_exact: Whether the divergence is computed in closed form. Else it is
            estimated at the weights drawn.
        activation: Keras activation, by name or as a function.
        use_bias: Whether a bias is added.
        activity_regularizer: Penalty on the output.
        **kwargs: Options of `keras.Layer`.

    Raises:
        TypeError: The posterior does not convert to a draw.
        ValueError: The last dimension of the input is unknown.
    """

    def __init__(
        self,
        units: int,
        make_posterior_fn: Callable[..., Callable[[Tensor], Distribution]],
        make_prior_fn: Callable[..., Callable[[Tensor], Distribution]],
        kl_weight: ArrayLike = None,
        kl_use_exact: bool = False,
        activation: Activation = None,
        use_bias: bool = True,
        activity_regularizer: Regularizer = None,
        **kwargs: Any,
    ):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        self.kl_weight = kl_weight
        self.kl_use_exact = kl_use_exact
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self._make_posterior_fn = make_posterior_fn
        self._make_prior_fn = make_prior_fn
        self.supports_jit = False
        self.input_spec = keras.layers.InputSpec(min_ndim=2)

    def build(self, input_shape: Shape) -> None:
        size = known_size(self, input_shape, -1)
        self.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-1: size})
        sizes = size * self.units, self.units if self.use_bias else 0
        # What they create must outlive the graph that is traced when the layer is
        # first called.
        with tf.init_scope():
            dtype = tf.as_dtype(self.variable_dtype)
            self._posterior = self._make_posterior_fn(*sizes, dtype)
            self._prior = self._make_prior_fn(*sizes, dtype)
            for model in (self._posterior, self._prior):
                if isinstance(model, keras.Layer) and not model.built:
                    model.build(input_shape)
        self.built = True

    def call(self, inputs: Tensor) -> Tensor:
        inputs = tf.cast(inputs, self.compute_dtype)
        with tf.GradientTape() as tape:
            posterior, prior = self._posterior(inputs), self._prior(inputs)
        # A model trains its own variables; of a function, this layer does.
        adopt(self, variables_of(posterior, prior))
        warn_of_others(self, tape.watched_variables())
        if not isinstance(posterior, DistributionTensor):
            raise TypeError(
                "`make_posterior_fn` must return a model that ends in a layer such as "
                "`DistributionLambda`, whose distribution converts to a draw of the "
                f"weights. Received: {posterior!r}"
            )
        self.add_loss(
            divergence(
                posterior, prior, use_exact_kl=self.kl_use_exact, weight=self.kl_weight
            )
        )
        weights = tf.cast(tf.convert_to_tensor(posterior), self.compute_dtype)
        size = self.input_spec.axes[-1]
        kernel = weights[..., : size * self.units]
        shape = tf.concat([tf.shape(kernel)[:-1], [size, self.units]], axis=0)
        outputs = keras.ops.matmul(inputs, tf.reshape(kernel, shape))
        if self.use_bias:
            outputs += weights[..., size * self.units :]
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.units)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "units": self.units,
            "make_posterior_fn": to_config(self._make_posterior_fn),
            "make_prior_fn": to_config(self._make_prior_fn),
            "kl_weight": None if self.kl_weight is None else float(self.kl_weight),
            "kl_use_exact": self.kl_use_exact,
            **activity_regularizer_config(self),
            "activation": to_config(self.activation),
            "use_bias": self.use_bias,
        }
