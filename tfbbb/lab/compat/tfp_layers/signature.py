"""The signature that `help` and editors show for a shared constructor."""

import inspect
from typing import Any


def show_signature(cls: Any, **defaults: Any) -> None:
    """Gives a layer's constructor its own defaults, and `seed` only if supported.

    Args:
        cls: The layer's class, with the attribute `takes_seed`.
        **defaults: Defaults of the class by name.
    """
    parameters = inspect.signature(cls.__init__).parameters
    cls.__signature__ = inspect.Signature(
        [
            parameter.replace(default=defaults.get(name, parameter.default))
            for name, parameter in parameters.items()
            if name != "self" and (name != "seed" or cls.takes_seed)
        ]
    )
