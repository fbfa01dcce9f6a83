"""Functions in the configuration of a layer."""

import base64
import io
import marshal
import pickle
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import keras
import tensorflow as tf

_PACKAGE = "tfbbb.compat.tfp_layers"
_PICKLED = "pickled_function"
_CODE = base64.b64encode(marshal.dumps((lambda: None).__code__)).decode("ascii")
_LAMBDA = {"class_name": "__lambda__", "config": {"value": [_CODE, None, None]}}


def to_config(function: Any) -> Any:
    """Returns a function as JSON: by name if it is registered with Keras, else pickled.

    A pickled function is read back only where Keras reads Python lambdas, too: with
    `keras.saving.load_model(path, safe_mode=False)`. Register functions with
    `keras.saving.register_keras_serializable` to do without.
    """
    if function is None or isinstance(function, str | dict):
        return function
    if hasattr(function, "get_config") or _is_registered(function):
        return keras.saving.serialize_keras_object(function)
    pickled = io.BytesIO()
    _Pickler(pickled).dump(function)
    code = base64.b64encode(pickled.getvalue()).decode("ascii")
    return {"class_name": _PICKLED, "config": code}


def from_config(config: Any) -> Any:
    """Returns the function of a configuration that `to_config` returned.

    Raises:
        ValueError: For a pickled function while Keras loads in safe mode.
    """
    if not isinstance(config, dict):
        return config
    if config.get("class_name") != _PICKLED:
        return keras.saving.deserialize_keras_object(config)
    if _in_safe_mode():
        raise ValueError(
            "The model holds a Python function that is not registered with Keras. "
            "Loading it runs code from the file: if you trust the file, pass "
            "`safe_mode=False` to `load_model`, or save the model anew with a function "
            "registered by `keras.saving.register_keras_serializable`. "
            "Received: safe_mode=True"
        )
    return pickle.loads(base64.b64decode(config["config"]))


class _Pickler(cloudpickle.Pickler):
    """Pickles functions so that variables that several functions read stay shared."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, tf.Variable):
            return _read_variable, (obj._unique_id, *obj.__reduce__())
        return super().reducer_override(obj)


@keras.saving.register_keras_serializable(package=_PACKAGE)
class _SharedVariable:
    """Holds a variable while Keras loads the layers of one model."""

    def __init__(self, make: Any, arguments: Any):
        self.make = make
        self.arguments = arguments
        self.variable = make(*arguments)

    def get_config(self) -> dict[str, Any]:
        return {"make": self.make, "arguments": self.arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "_SharedVariable":
        return cls(**config)


def _read_variable(name: str, make: Any, arguments: Any) -> tf.Variable:
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


def _is_registered(function: Any) -> bool:
    name = keras.saving.get_registered_name(function)
    return keras.saving.get_registered_object(name) is function


def _in_safe_mode() -> bool:
    # Keras does not say; but it refuses a lambda. Inside `load_model` the `safe_mode`
    # given there rules, outside of it, as in `clone_model`, the one given here.
    try:
        keras.saving.deserialize_keras_object(_LAMBDA, safe_mode=False)
    except ValueError:
        return True
    return False
