"""Functions and objects of the user in the configuration of a layer."""

import base64
import io
import marshal
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle
import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.private_apis import variable_identity
from tfbbb.base.types import (
    Activation,
    Config,
    Constraint,
    Distribution,
    Initializer,
    Json,
    Options,
    Regularizer,
)
from tfbbb.bayes.priors import tfp_distribution
from tfbbb.lab.compat.tfp_layers.adopted_variable import variables_of
from tfbbb.lab.compat.tfp_layers.distribution_tensor import as_distribution

_PACKAGE = "tfbbb.compat.tfp_layers"
_PICKLED = "pickled_function"
_DISTRIBUTION = "distribution"
_CODE = base64.b64encode(marshal.dumps((lambda: None).__code__)).decode("ascii")
_LAMBDA = {"class_name": "__lambda__", "config": {"value": [_CODE, None, None]}}
_OF_KERAS = (
    keras.Layer,
    keras.initializers.Initializer,
    keras.regularizers.Regularizer,
    keras.constraints.Constraint,
)


def to_config(value: object) -> Any:
    """Returns a function or an object as JSON.

    Registered functions and objects of Keras are saved as Keras saves them.
    A distribution of constants is saved by its class and arguments.

    Everything else is pickled. A pickled value is read back only where Keras reads
    Python lambdas, too: with `keras.saving.load_model(path, safe_mode=False)`. Register
    functions with `keras.saving.register_keras_serializable` to do without.
    """
    if value is None or isinstance(value, str | dict):
        return value
    if is_saved_by_keras(value):
        return keras.saving.serialize_keras_object(value)
    if isinstance(value, tfp.distributions.Distribution) and not variables_of(value):
        try:
            config = tfp_distribution.to_config(as_distribution(value))
        except ValueError:
            return _pickled(value)
        return {"class_name": _DISTRIBUTION, "config": config}
    return _pickled(value)


def from_config(config: Any) -> Any:
    """Returns the function or object of a configuration that `to_config` returned."""
    if not isinstance(config, dict):
        return config
    if config.get("class_name") == _DISTRIBUTION:
        return tfp_distribution.from_config(config["config"])
    if config.get("class_name") != _PICKLED:
        # Keras would read in safe mode what this object holds, also in `clone_model`.
        return keras.saving.deserialize_keras_object(config, safe_mode=_in_safe_mode())
    if _in_safe_mode():
        raise ValueError(
            "The model holds a Python function that is not registered with Keras. "
            "Loading it runs code from the file: if you trust the file, pass "
            "`safe_mode=False` to `load_model`, or save the model anew with a function "
            "registered by `keras.saving.register_keras_serializable`. "
            "Received: safe_mode=True"
        )
    return pickle.loads(base64.b64decode(config["config"]))


def read_values(config: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns a layer's configuration with pickled and registered values as objects.

    The constructor reads the other values, as Keras does.
    """
    return {
        key: from_config(value) if _is_read_here(value) else value
        for key, value in config.items()
    }


def activation_config(activation: Activation) -> Json:
    """Returns an activation by the name that Keras has for it, else by `to_config`."""
    library = (getattr(activation, "__module__", None) or "").partition(".")[0]
    name = getattr(activation, "__name__", "")
    if library in ("keras", "tensorflow", "tf_keras") and hasattr(
        keras.activations, name
    ):
        return keras.activations.serialize(activation)
    return to_config(activation)


def activity_regularizer_config(layer: keras.Layer) -> Options:
    """Returns the entry of a layer's activity regularizer, if it has one."""
    if layer.activity_regularizer is None:
        return {}
    return {"activity_regularizer": to_config(layer.activity_regularizer)}


def variable_options(
    initializer: Initializer, regularizer: Regularizer, constraint: Constraint
) -> Options:
    """Returns the options of `add_weight` as objects of Keras."""
    return {
        "initializer": keras.initializers.get(initializer),
        "regularizer": keras.regularizers.get(regularizer),
        "constraint": keras.constraints.get(constraint),
    }


def is_saved_by_keras(value: object) -> bool:
    """Returns whether Keras saves a function or an object and reads it back."""
    named = value if hasattr(value, "__name__") else type(value)
    registered = keras.saving.get_registered_name(named)
    if keras.saving.get_registered_object(registered) is named:
        return named is value or hasattr(value, "get_config")
    return isinstance(value, _OF_KERAS) and hasattr(value, "get_config")


def _is_read_here(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    registered = keras.saving.get_registered_object(value.get("registered_name"))
    return registered is not None or value.get("class_name") == _PICKLED


def _pickled(value: object) -> Options:
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        code = base64.b64encode(file.getvalue()).decode("ascii")
    return {"class_name": _PICKLED, "config": code}


class _Pickler(cloudpickle.Pickler):
    """Pickles distributions and bijectors by their class and arguments.

    By default, some of them (`tfd.Independent`) are pickled but cannot be read back.
    Variables that several functions read stay shared.
    """

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, tf.Variable):
            return _read_variable, (variable_identity(value), *value.__reduce__())
        value = as_distribution(value)
        if isinstance(value, tfp.distributions.Distribution | tfp.bijectors.Bijector):
            return _constructed, (type(value), dict(value.parameters))
        return super().reducer_override(value)


def _constructed(cls: type[Distribution], arguments: Options) -> Distribution:
    return cls(**arguments)


@keras.saving.register_keras_serializable(package=_PACKAGE)
class _SharedVariable:
    """Holds a variable while Keras loads the layers of one model."""

    def __init__(self, make: Callable[..., tf.Variable], arguments: tuple[Any, ...]):
        self.make = make
        self.arguments = arguments
        self.variable = make(*arguments)

    def get_config(self) -> Config:
        return {"make": self.make, "arguments": self.arguments}

    @classmethod
    def from_config(cls, config: Config) -> "_SharedVariable":
        return cls(**config)


def _read_variable(
    name: str, make: Callable[..., tf.Variable], arguments: tuple[Any, ...]
) -> tf.Variable:
    """Returns the variable of that name in the model that is being loaded."""
    # Keras keeps shared objects while it loads one model. Outside of that, as in
    # `clone_model`, every function gets a variable of its own.
    config = {
        "module": None,
        "class_name": "_SharedVariable",
        "registered_name": f"{_PACKAGE}>_SharedVariable",
        "config": {"make": make, "arguments": arguments},
        "shared_object_id": name,
    }
    return keras.saving.deserialize_keras_object(config).variable


def _in_safe_mode() -> bool:
    # Keras does not say; but it refuses a lambda. Inside `load_model` the `safe_mode`
    # given there rules, outside of it, as in `clone_model`, the one given here.
    try:
        keras.saving.deserialize_keras_object(_LAMBDA, safe_mode=False)
    except ValueError:
        return True
    return False
