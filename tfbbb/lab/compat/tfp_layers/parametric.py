"""Base of the layers that make a known distribution of a vector of parameters."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.documented_arguments import document_inherited_arguments
from tfbbb.base.types import Config, Shape, Tensor, TensorFunction
from tfbbb.lab.compat.tfp_layers.distribution_lambda import DistributionLambda

tfd = tfp.distributions


class Parametric(DistributionLambda):
    """A layer that makes the distribution of `type(self).new(params, **options)`.

    The options are the arguments of `new`, which the layer's configuration holds.

    Args:
        event_shape: Shape of one draw: an integer or a vector of integers.
        convert_to_tensor_fn: Function that converts the distribution to a tensor, or
            its name: see `DistributionLambda`.
        sample_dtype: Dtype of draws; the default is the dtype of the parameters.
        validate_args: Whether to check parameters and values in every call.
        **kwargs: Options of `keras.Layer`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        document_inherited_arguments(cls)

    def __init__(
        self, convert_to_tensor_fn: TensorFunction | str, kwargs: Any, **options: Any
    ):
        super().__init__(self._make, convert_to_tensor_fn, **kwargs)
        self._options = options

    def build(self, input_shape: Shape) -> None:
        # Keras would call the layer to build a layer of components, which needs none.
        self.built = True

    def _make(self, params: Tensor) -> tfp.distributions.Distribution:
        return type(self).new(params, **self._options)

    @staticmethod
    def new(
        params: Tensor, *args: Any, **kwargs: Any
    ) -> tfp.distributions.Distribution:
        """Returns the distribution of a tensor of parameters."""
        raise NotImplementedError

    def get_config(self) -> Config:
        config = super(DistributionLambda, self).get_config()
        options = {k: _plain(v) for k, v in self._options.items()}
        if "dtype" in options:
            # Of draws; `dtype` is the layer's.
            options["sample_dtype"] = options.pop("dtype")
        return {**config, **self._serialized_conversion(), **options}


def _plain(value: object) -> object:
    if isinstance(value, keras.Layer):
        return keras.saving.serialize_keras_object(value)
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, tf.TensorShape):
        return value.as_list()
    if tf.is_tensor(value) or isinstance(value, np.ndarray | np.generic):
        return np.asarray(value).tolist()
    return list(value) if isinstance(value, tuple) else value
