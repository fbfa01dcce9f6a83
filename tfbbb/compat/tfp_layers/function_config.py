"""Functions in the configuration of a layer."""

import base64
import marshal
import pickle
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import keras

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
    code = base64.b64encode(cloudpickle.dumps(function)).decode("ascii")
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
