"""Programs of other libraries, under Keras 3."""

from typing import Any

from tfbbb.base.lazy import lazy_name

__all__ = ["tfp_layers"]


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, {"tfp_layers": ".tfp_layers"}, name)


def __dir__() -> list[str]:
    return __all__
