"""A layer whose output is a variable."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import (
    Activation,
    Config,
    Constraint,
    DType,
    Initializer,
    Regularizer,
    Shape,
    Tensor,
)
from tfbbb.lab.compat.tfp_layers.function_config import (
    ReadsConfig,
    full_precision,
    to_config,
)


@keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
class VariableLayer(ReadsConfig, keras.Layer):
    """Returns a variable and ignores the input: `f(x) = activation(c)`.

    Together with a distribution layer it makes a distribution whose parameters do not
    depend on the input, such as posterior and prior of `DenseVariational`.

    Example:

    >>> import keras, tensorflow as tf
    >>> layer = VariableLayer(3, initializer="ones")
    >>> layer(tf.zeros([1])).numpy()
    array([1., 1., 1.], dtype=float32)

    Args:
        shape: Shape of the variable: an integer or a vector of integers.
        dtype: Dtype of the variable; by default the global policy's variable dtype.
        activation: Keras activation, by name or as a function.
        initializer: Initial values of the variable.
        regularizer: Penalty on the variable.
        constraint: Projection of the variable after each update.
        **kwargs: Options of `keras.Layer`, such as `trainable` and `name`.
    """

    def __init__(
        self,
        shape: Shape,
        dtype: DType = None,
        activation: Activation = None,
        initializer: Initializer = "zeros",
        regularizer: Regularizer = None,
        constraint: Constraint = None,
        **kwargs: Any,
    ):
        super().__init__(dtype=full_precision(dtype), **kwargs)
        self.activation = keras.activations.get(activation)
        self._options = {
            "initializer": keras.initializers.get(initializer),
            "regularizer": keras.regularizers.get(regularizer),
            "constraint": keras.constraints.get(constraint),
        }
        self._shape = tuple(int(n) for n in np.asarray(shape).reshape(-1))
        self._var = self.add_weight(
            name="constant",
            shape=self._shape,
            trainable=self.trainable,
            autocast=False,
            **self._options,
        )
        self.built = True

    def call(self, _: Tensor) -> Tensor:
        return self.activation(tf.convert_to_tensor(self._var))

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> keras.KerasTensor:
        return keras.KerasTensor(self._shape, self.variable_dtype)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "shape": list(self._shape),
            "activation": to_config(self.activation),
            **{name: to_config(value) for name, value in self._options.items()},
        }
