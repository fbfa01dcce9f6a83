"""Variables of layers as parameters of distributions."""

from typing import Any

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import Array, DType, Tensor


class VariableReference(tf.Module, metaclass=type(tfp.util.DeferredTensor)):  # type: ignore[metaclass]
    """A variable of a layer that a distribution reads whenever it is evaluated.

    A distribution turns a Keras variable into a constant when it is constructed; of an
    object with reference semantics, which this is, it keeps the object.

    Args:
        variable: The Keras variable. Its attributes are attributes of the reference.
    """

    is_tensor_like = True

    def __init__(self, variable: keras.Variable):
        super().__init__(name=variable.name)
        self.variable = variable

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "variable" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__["variable"], name)

    def __array__(self, dtype: DType = None, copy: bool | None = None) -> Array:
        return self.variable.numpy().astype(dtype or self.variable.dtype)

    @property
    def dtype(self) -> tf.DType:
        return tf.as_dtype(self.variable.dtype)

    @property
    def shape(self) -> tf.TensorShape:
        return tf.TensorShape(self.variable.shape)

    def _value(
        self, dtype: DType = None, name: str | None = None, as_ref: bool = False
    ) -> Tensor:
        """Returns the value; by this name TensorFlow Probability asks for it."""
        return tf.convert_to_tensor(self.variable, dtype=dtype, name=name)
