"""Weights of a layer as a length and a direction."""

import warnings
from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.private_apis import in_stateless_scope
from tfbbb.base.types import Config, Shape, Tensor

_TESTED = ("Dense", "Conv2D", "Conv2DTranspose")


@keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
class WeightNorm(keras.layers.Wrapper):
    """Parameterises the kernel of a layer by its length and its direction.

    `kernel = g * v / ||v||`, with one norm and one g for each output of the layer
    (Salimans & Kingma 2016). The layer's own kernel is v.

    The first call on data initialises g: as `||v||`, or, if `data_init`, together with
    the bias, such that each output has mean 0 and variance 1 over the rows of that call
    before the activation.

    Example:

    >>> import keras
    >>> layer = WeightNorm(keras.layers.Dense(2))
    >>> y = layer(keras.random.normal((1000, 3), mean=5.0, seed=1))
    >>> (abs(keras.ops.mean(y, 0)) < 1e-3).numpy(), keras.ops.std(y, 0).numpy().round(3)
    (array([ True,  True]), array([1., 1.], dtype=float32))

    Args:
        layer: A layer with a variable `kernel`, such as `Dense` or `Conv2D`.
        data_init: Whether the first call fits g and the bias to its rows.
        **kwargs: Options of `keras.Layer`. The default dtype is the dtype of `layer`.

    Raises:
        ValueError: `layer` is not a layer; or, when built, it has no kernel.
    """

    def __init__(self, layer: keras.Layer, data_init: bool = True, **kwargs: Any):
        if not isinstance(layer, keras.Layer):
            raise ValueError(
                f"`layer` must be a `keras.Layer`. Received: layer={layer!r}"
            )
        if type(layer).__name__ not in _TESTED:
            warnings.warn(
                f"`WeightNorm` is tested with {', '.join(_TESTED)} only. "
                f"Received: layer={layer!r}",
                stacklevel=2,
            )
        super().__init__(layer, **{"dtype": layer.dtype_policy, **kwargs})
        self.data_init = data_init

    def build(self, input_shape: Shape = None) -> None:
        super().build(input_shape)
        if not isinstance(getattr(self.layer, "kernel", None), keras.Variable):
            raise ValueError(
                "`WeightNorm` must wrap a layer with a variable `kernel`. "
                f"Received: layer={self.layer!r}"
            )
        rank = len(self.v.shape)
        axis = rank - (2 if type(self.layer).__name__.endswith("Transpose") else 1)
        self._norm_axes = [k for k in range(rank) if k != axis]
        self.g = self.add_weight(
            name="g",
            shape=(self.v.shape[axis],),
            initializer="ones",
            dtype=self.v.dtype,
            autocast=False,
        )
        self.initialized = self.add_weight(
            name="initialized",
            shape=(),
            initializer="zeros",
            dtype="bool",
            trainable=False,
        )
        self.built = True

    @property
    def v(self) -> keras.Variable:
        """The direction of the kernel, of any length."""
        return self.layer.kernel

    def call(self, inputs: Tensor) -> Tensor:
        # Without data flow, as in a scope that keeps its updates, there are no data.
        if not in_stateless_scope():
            tf.cond(self.initialized, lambda: False, lambda: self._initialize(inputs))
        scope = keras.StatelessScope(self._state(), collect_losses=True)
        with scope:
            outputs = self.layer(inputs)
        for loss in scope.losses:
            self.add_loss(loss)
        return outputs

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self.layer.compute_output_shape(input_shape)

    def get_config(self) -> Config:
        return {**super().get_config(), "data_init": self.data_init}

    def _state(self) -> list[tuple[keras.Variable, tf.Tensor]]:
        """Returns the values that the variables of the layer have in its call."""
        v = tf.cast(self.v, self.g.dtype)
        shape = [1 if k in self._norm_axes else -1 for k in range(len(v.shape))]
        kernel = tf.nn.l2_normalize(v, self._norm_axes) * tf.reshape(self.g, shape)
        return [*((w, w.value) for w in self.layer.variables), (self.v, kernel)]

    def _initialize(self, inputs: Tensor) -> bool:
        if self.data_init:
            mean, variance = self._moments(inputs)
            scale = tf.math.rsqrt(variance + 1e-10)
            self.g.assign(self.g * scale)
            if self.layer.bias is not None:
                self.layer.bias.assign(-mean * scale)
        else:
            v = tf.cast(self.v, self.g.dtype)
            self.g.assign(tf.sqrt(tf.reduce_sum(tf.square(v), self._norm_axes)))
        self.initialized.assign(True)
        return True

    def _moments(self, inputs: Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns mean and variance of each output before bias and activation."""
        state = self._state()
        if self.layer.bias is not None:
            state.append((self.layer.bias, tf.zeros(self.layer.bias.shape)))
        activation, self.layer.activation = self.layer.activation, None
        try:
            with keras.StatelessScope(state):
                outputs = tf.cast(self.layer.call(inputs), self.g.dtype)
        finally:
            self.layer.activation = activation
        channels_first = getattr(self.layer, "data_format", None) == "channels_first"
        axis = 1 if channels_first else len(outputs.shape) - 1
        axes = [k for k in range(len(outputs.shape)) if k != axis]
        return tf.nn.moments(outputs, axes)
