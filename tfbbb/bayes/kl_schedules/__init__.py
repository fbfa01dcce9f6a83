"""Schedules of the weight of the KL divergence, resolvable by string name."""

from typing import Any

from tfbbb.base.strategy import required_arguments
from tfbbb.bayes.kl_schedules.schedules import (
    Blundell,
    Constant,
    FromEffectiveSize,
    KLSchedule,
    LinearWarmup,
    RowsPerWeight,
    Tempered,
    register,
    registry,
)

names, make, serialize, deserialize = (
    registry.names,
    registry.make,
    registry.serialize,
    registry.deserialize,
)


def get(identifier: Any) -> Any:
    """Resolves a string name, a config from `serialize` or a `KLSchedule`."""
    if isinstance(identifier, str) and identifier in registry.classes:
        schedule = registry.classes[identifier]
        required = required_arguments(schedule)
        if required:
            raise ValueError(
                "This KL schedule needs a number: pass "
                f"`tfbbb.kl_schedules.{schedule.__name__}({', '.join(required)})`. "
                f"Received: kl_schedule={identifier!r}"
            )
    return registry.get(identifier)


__all__ = [
    "Blundell",
    "Constant",
    "FromEffectiveSize",
    "KLSchedule",
    "LinearWarmup",
    "RowsPerWeight",
    "Tempered",
    "deserialize",
    "get",
    "make",
    "names",
    "register",
    "registry",
    "serialize",
]
