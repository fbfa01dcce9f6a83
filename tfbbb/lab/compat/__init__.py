"""Programs and weights of other libraries, under Keras 3."""

from importlib import import_module
from typing import Any

from tfbbb.lab.compat.load_tfp_weights import load_tfp_weights

__all__ = ["load_tfp_weights", "tfp_layers"]


def __getattr__(name: str) -> Any:
    if name != "tfp_layers":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("tfbbb.lab.compat.tfp_layers")


def __dir__() -> list[str]:
    return __all__
