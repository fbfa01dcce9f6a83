"""Functions and objects of the user in the configuration of a layer."""

import base64
import pickle
from typing import Any, Self

import cloudpickle
import keras
import tensorflow_probability as tfp

from tfbbb.base.private_apis import in_safe_mode
from tfbbb.base.types import Config, DType, Options
from tfbbb.bayes.priors import tfp_distribution
from tfbbb.lab.compat.tfp_layers.adopted_variable import variables_of
from tfbbb.lab.compat.tfp_layers.distribution_tensor import as_distribution

_PICKLED = "pickled_function"
_DISTRIBUTION = "distribution"
_OF_KERAS = (
    keras.Layer,
    keras.initializers.Initializer,
    keras.regularizers.Regularizer,
    keras.constraints.Constraint,
)


class ReadsConfig:
    """An object whose configuration has values that `to_config` returned."""

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(**{key: from_config(value) for key, value in config.items()})


def to_config(value: object) -> Any:
    """Returns a function or an object as JSON.

    Activations, registered functions and objects of Keras are saved as Keras saves
    them, and a distribution of constants by its class and arguments. Other functions
    are pickled, and are read back only where Keras reads Python lambdas, too.
    """
    if value is None or isinstance(value, str | dict):
        return value
    library = (getattr(value, "__module__", None) or "").partition(".")[0]
    name = getattr(value, "__name__", "")
    if library in ("keras", "tensorflow") and hasattr(keras.activations, name):
        return keras.activations.serialize(value)
    if _is_saved_by_keras(value):
        return keras.saving.serialize_keras_object(value)
    if isinstance(value, tfp.distributions.Distribution):
        if variables_of(value):
            raise ValueError(
                "A distribution of variables is not part of a model's configuration: "
                "save the model's weights, or pass a registered function that returns "
                f"the distribution. Received: {value!r}"
            )
        config = tfp_distribution.to_config(as_distribution(value))
        return {"class_name": _DISTRIBUTION, "config": config}
    code = base64.b64encode(cloudpickle.dumps(value)).decode("ascii")
    return {"class_name": _PICKLED, "config": code}


def from_config(config: Any) -> Any:
    """Returns the function or object of a configuration that `to_config` returned."""
    if not isinstance(config, dict) or "class_name" not in config:
        return config
    if config["class_name"] == _DISTRIBUTION:
        return tfp_distribution.from_config(config["config"])
    if config["class_name"] != _PICKLED:
        # The `safe_mode` of `load_model` rules where a model is loaded, this one
        # elsewhere, as in `clone_model`.
        return keras.saving.deserialize_keras_object(config, safe_mode=False)
    if in_safe_mode():
        raise ValueError(
            "The model holds a Python function that is not registered with Keras. "
            "Loading it runs code from the file: if you trust the file, pass "
            "`safe_mode=False` to `load_model`, or save the model anew with a function "
            "registered by `keras.saving.register_keras_serializable`. "
            "Received: safe_mode=True"
        )
    return pickle.loads(base64.b64decode(config["config"]))


def activity_regularizer_config(layer: keras.Layer) -> Options:
    """Returns the entry of a layer's activity regularizer, if it has one."""
    if layer.activity_regularizer is None:
        return {}
    return {"activity_regularizer": to_config(layer.activity_regularizer)}


def full_precision(dtype: DType) -> keras.DTypePolicy:
    """Returns the policy of `dtype` without its half precision for computations.

    Under `mixed_float16` or `mixed_bfloat16` densities and divergences stay in
    float32: sums over thousands of weights or pixels do not survive ten bits.
    """
    policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
    if policy.compute_dtype == policy.variable_dtype:
        return policy
    return keras.DTypePolicy(policy.variable_dtype)


def _is_saved_by_keras(value: object) -> bool:
    named = value if hasattr(value, "__name__") else type(value)
    registered = keras.saving.get_registered_name(named)
    if keras.saving.get_registered_object(registered) is named:
        return named is value or hasattr(value, "get_config")
    return isinstance(value, _OF_KERAS) and hasattr(value, "get_config")
